import { ariaDescribedByIds, type RegistryWidgetsType, type WidgetProps } from "@rjsf/utils";
import type { JSX } from "preact";

const notSet = "";

/** A choice. Every value can be picked, null included, and an optional one can be left out again. */
function ChoiceWidget({ id, label, value, required, disabled, readonly, multiple, options, schema, onChange }: WidgetProps): JSX.Element {
  const choices = (options.enumOptions ?? []) as readonly { readonly value: unknown; readonly label: string }[];
  const indexOf = (wanted: unknown): number => choices.findIndex((choice) => JSON.stringify(choice.value) === JSON.stringify(wanted));
  const common = {
    id,
    disabled: disabled || readonly,
    "aria-label": label || schema.title || "Choice",
    "aria-describedby": ariaDescribedByIds(id),
  };
  const items = choices.map((choice, index) => (
    <option key={JSON.stringify(choice.value)} value={String(index)}>
      {choice.value === null ? "null" : choice.label}
    </option>
  ));
  if (multiple) {
    const selected = new Set((Array.isArray(value) ? value : []).map(indexOf));
    return (
      <select
        {...common}
        multiple
        onChange={({ currentTarget }) => onChange([...currentTarget.selectedOptions].map((option) => choices[Number(option.value)]?.value))}
      >
        {choices.map((choice, index) => (
          <option key={JSON.stringify(choice.value)} value={String(index)} selected={selected.has(index)}>
            {choice.label}
          </option>
        ))}
      </select>
    );
  }
  const current = value === undefined ? -1 : indexOf(value);
  return (
    <select
      {...common}
      value={current === -1 ? notSet : String(current)}
      onChange={({ currentTarget }) => onChange(currentTarget.value === notSet ? undefined : choices[Number(currentTarget.value)]?.value)}
    >
      {required && current !== -1 ? null : <option value={notSet}>{required ? "Choose…" : "not sent"}</option>}
      {items}
    </select>
  );
}

/** A boolean has three states: a checkbox could not say that nothing is sent. */
function BooleanWidget(props: WidgetProps): JSX.Element {
  const enumOptions = [
    { value: true, label: "true" },
    { value: false, label: "false" },
  ];
  return <ChoiceWidget {...props} options={{ ...props.options, enumOptions }} />;
}

function LinesWidget({ id, value, disabled, readonly, label, options, onChange }: WidgetProps): JSX.Element {
  return (
    <textarea
      id={id}
      rows={3}
      value={typeof value === "string" ? value : ""}
      disabled={disabled || readonly}
      aria-label={label}
      aria-describedby={ariaDescribedByIds(id)}
      onInput={({ currentTarget }) => onChange(currentTarget.value === "" ? options.emptyValue : currentTarget.value)}
    />
  );
}

/**
 * One line of text. Formats have no widget of their own: a browser's field for dates or addresses would change or refuse what a tool
 * has to be tested with.
 */
function LineWidget(props: WidgetProps): JSX.Element {
  const { id, value, disabled, readonly, label, options, schema, onChange } = props;
  const isNumber = [schema.type].flat().some((type) => type === "number" || type === "integer");
  if (typeof value === "string" && value.includes("\n")) return <LinesWidget {...props} />;
  return (
    <input
      id={id}
      type="text"
      inputMode={isNumber ? "decimal" : "text"}
      spellcheck={false}
      autocomplete="off"
      value={value === undefined || value === null ? "" : String(value)}
      placeholder={value === null ? "null" : ""}
      disabled={disabled || readonly}
      aria-label={label}
      aria-describedby={ariaDescribedByIds(id)}
      onInput={({ currentTarget }) => onChange(currentTarget.value === "" ? options.emptyValue : currentTarget.value)}
    />
  );
}

const line = LineWidget as unknown;
const choice = ChoiceWidget as unknown;

/** Names that @rjsf asks for by type and format. */
export const formWidgets = {
  ...Object.fromEntries(
    [
      ["TextWidget", "PasswordWidget", "EmailWidget", "URLWidget", "UpDownWidget", "DateWidget", "DateTimeWidget", "TimeWidget"],
      ["ColorWidget", "FileWidget", "AltDateWidget", "AltDateTimeWidget", "RangeWidget", "RatingWidget"],
    ]
      .flat()
      .map((name) => [name, line]),
  ),
  TextareaWidget: LinesWidget as unknown,
  SelectWidget: choice,
  RadioWidget: choice,
  CheckboxesWidget: choice,
  CheckboxWidget: BooleanWidget as unknown,
} as RegistryWidgetsType;
