import type { Signal } from "@preact/signals";
import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type CyclicSchemaExpandProps,
  canExpand,
  type FieldErrorProps,
  type FieldTemplateProps,
  type IconButtonProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type TemplatesType,
  type UnsupportedFieldProps,
} from "@rjsf/utils";
import type { ComponentChildren, JSX } from "preact";

/** What the form hands to its templates. */
export interface FormContext {
  /** Shows only the fields at the top whose name or description contains this. */
  readonly filter: Signal<string>;
}

/** Templates of @rjsf. Everything that a schema says is a text node: it is a stranger's text, so it is not read as Markdown. */
function Field(props: FieldTemplateProps): JSX.Element {
  const { id, label, children, errors, rawDescription, hidden, required, schema, formData, fieldPathId, registry, onChange } = props;
  const isAdditional = ADDITIONAL_PROPERTY_FLAG in schema;
  const isContainer = ["object", "array"].includes(String(schema.type)) || schema.properties !== undefined;
  const isChoice = schema.anyOf !== undefined || schema.oneOf !== undefined;
  const path = fieldPathId?.path ?? [];
  const filter = (registry.formContext as FormContext | undefined)?.filter.value.toLowerCase() ?? "";
  const isFiltered = path.length === 1 && filter !== "" && !`${path[0]} ${label} ${rawDescription ?? ""}`.toLowerCase().includes(filter);
  const canBeNull = !isContainer && Array.isArray(schema.type) && schema.type.includes("null") && schema.enum === undefined;
  return (
    <div class="field" hidden={hidden || isFiltered}>
      {isAdditional ? <KeyOfEntry {...props} /> : null}
      {isContainer || isChoice || path.length === 0 ? null : (
        <div class="field-head">
          <label for={id}>
            {isAdditional ? "Value" : label}
            {required ? <span class="required"> (required)</span> : null}
          </label>
          <span class="hint">{hintOf(schema)}</span>
        </div>
      )}
      {rawDescription && !isContainer ? (
        <p class="description" id={`${id}__description`}>
          {rawDescription}
        </p>
      ) : null}
      {children as ComponentChildren}
      {canBeNull && formData !== null ? (
        <button type="button" class="small" onClick={() => onChange(null, path)}>
          Set {label} to null
        </button>
      ) : null}
      {errors as ComponentChildren}
    </div>
  );
}

function KeyOfEntry({ id, label, onKeyRenameBlur, onRemoveProperty, disabled, readonly }: FieldTemplateProps): JSX.Element {
  return (
    <div class="entry-key">
      <label for={`${id}-key`}>Key</label>
      <input
        id={`${id}-key`}
        type="text"
        defaultValue={label}
        disabled={disabled || readonly}
        onBlur={onKeyRenameBlur as unknown as () => void}
      />
      <button type="button" class="small" onClick={() => onRemoveProperty()} disabled={disabled || readonly}>
        Remove {label}
      </button>
    </div>
  );
}

/** What a value may be, in few words. */
function hintOf(schema: FieldTemplateProps["schema"]): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, format } = schema;
  const known = [
    [schema.type].flat().join(" or "),
    format,
    minimum === undefined ? undefined : `≥ ${minimum}`,
    exclusiveMinimum === undefined ? undefined : `> ${exclusiveMinimum}`,
    maximum === undefined ? undefined : `≤ ${maximum}`,
    exclusiveMaximum === undefined ? undefined : `< ${exclusiveMaximum}`,
    minLength === undefined ? undefined : `at least ${minLength} characters`,
    maxLength === undefined ? undefined : `at most ${maxLength} characters`,
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ];
  return known.filter((part) => part !== undefined && part !== "").join(", ");
}

function ObjectFields(props: ObjectFieldTemplateProps): JSX.Element | null {
  const { fieldPathId, title, description, properties, schema, uiSchema, formData, onAddProperty, disabled, readonly, required } = props;
  const { optionalDataControl } = props;
  const isRoot = fieldPathId.path.length === 0;
  const content = (
    <>
      {description ? <p class="description">{description as ComponentChildren}</p> : null}
      {optionalDataControl as ComponentChildren}
      {properties.map((property) => property.content as ComponentChildren)}
      {canExpand(schema, uiSchema, formData) ? (
        <button type="button" class="small" onClick={() => onAddProperty()} disabled={disabled || readonly}>
          Add an entry{isRoot ? "" : ` to ${title}`}
        </button>
      ) : null}
    </>
  );
  if ((schema.anyOf || schema.oneOf) && !schema.properties && properties.length === 0) return null;
  if (isRoot) return <div id={fieldPathId.$id}>{content}</div>;
  return (
    <fieldset id={fieldPathId.$id}>
      <legend>
        {title}
        {required ? <span class="required"> (required)</span> : null}
      </legend>
      {content}
    </fieldset>
  );
}

function ListFields(props: ArrayFieldTemplateProps): JSX.Element {
  const { fieldPathId, title, items, canAdd, onAddClick, disabled, readonly, schema, required, optionalDataControl } = props;
  return (
    <fieldset id={fieldPathId.$id}>
      <legend>
        {title}
        {required ? <span class="required"> (required)</span> : null}
      </legend>
      {schema.description ? <p class="description">{schema.description}</p> : null}
      {optionalDataControl as ComponentChildren}
      <div class="items">{items as ComponentChildren}</div>
      {canAdd ? (
        <button type="button" class="small" onClick={onAddClick} disabled={disabled || readonly}>
          Add to {title}
        </button>
      ) : null}
    </fieldset>
  );
}

function ListItem({ children, buttonsProps, hasToolbar, index }: ArrayFieldItemTemplateProps): JSX.Element {
  const { hasMoveUp, hasMoveDown, hasRemove, onMoveUpItem, onMoveDownItem, onRemoveItem, disabled, readonly } = buttonsProps;
  const isOff = Boolean(disabled || readonly);
  const number = index + 1;
  return (
    <div class="item">
      <div class="item-fields">{children as ComponentChildren}</div>
      {hasToolbar ? (
        <div class="item-buttons">
          {hasMoveUp || hasMoveDown ? (
            <>
              <button
                type="button"
                class="small"
                aria-label={`Move item ${number} up`}
                disabled={isOff || !hasMoveUp}
                onClick={onMoveUpItem}
              >
                ↑
              </button>
              <button
                type="button"
                class="small"
                aria-label={`Move item ${number} down`}
                disabled={isOff || !hasMoveDown}
                onClick={onMoveDownItem}
              >
                ↓
              </button>
            </>
          ) : null}
          {hasRemove ? (
            <button type="button" class="small" aria-label={`Remove item ${number}`} disabled={isOff} onClick={onRemoveItem}>
              ✕
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function Branches({ selector, optionSchemaField, schema }: MultiSchemaFieldTemplateProps): JSX.Element {
  return (
    <div class="branches">
      {selector ? (
        <div class="branch">
          <span aria-hidden="true">{schema.title ?? "One of"}</span> {selector as ComponentChildren}
        </div>
      ) : null}
      {optionSchemaField as ComponentChildren}
    </div>
  );
}

function Expand({ name, onExpand }: CyclicSchemaExpandProps): JSX.Element {
  return (
    <button type="button" class="small" onClick={onExpand as unknown as () => void}>
      Open {name}
    </button>
  );
}

function FieldErrors({ errors = [], fieldPathId }: FieldErrorProps): JSX.Element | null {
  if (errors.length === 0) return null;
  return (
    <ul class="errors" id={`${fieldPathId.$id}__error`}>
      {errors.map((error) => (
        <li key={String(error)}>{error as ComponentChildren}</li>
      ))}
    </ul>
  );
}

function OptionalControls(props: {
  readonly id?: string;
  readonly label: string;
  readonly onAddClick?: () => void;
  readonly onRemoveClick?: () => void;
}): JSX.Element {
  const onClick = props.onAddClick ?? props.onRemoveClick;
  if (onClick === undefined) return <em id={props.id}>{props.label}</em>;
  return (
    <button type="button" class="small" id={props.id} onClick={onClick}>
      {props.onAddClick === undefined ? "Do not send this" : "Send this"}
    </button>
  );
}

function Unsupported({ reason }: UnsupportedFieldProps): JSX.Element {
  return <p class="description">The form cannot show this field{reason ? ` (${reason})` : ""}. Write it in the JSON view.</p>;
}

function Nothing(): null {
  return null;
}

function PlainButton({ onClick, disabled, title }: IconButtonProps): JSX.Element {
  return (
    <button type="button" class="small" disabled={disabled} onClick={onClick as unknown as () => void}>
      {title}
    </button>
  );
}

export const formTemplates = {
  FieldTemplate: Field,
  ObjectFieldTemplate: ObjectFields,
  ArrayFieldTemplate: ListFields,
  ArrayFieldItemTemplate: ListItem,
  MultiSchemaFieldTemplate: Branches,
  CyclicSchemaExpandTemplate: Expand,
  FieldErrorTemplate: FieldErrors,
  OptionalDataControlsTemplate: OptionalControls,
  UnsupportedFieldTemplate: Unsupported,
  TitleFieldTemplate: Nothing,
  DescriptionFieldTemplate: Nothing,
  FieldHelpTemplate: Nothing,
  ErrorListTemplate: Nothing,
  ButtonTemplates: { SubmitButton: Nothing, AddButton: PlainButton, RemoveButton: PlainButton },
} as unknown as Partial<TemplatesType>;
