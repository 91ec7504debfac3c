import { type Signal, useSignal } from "@preact/signals";
import Form from "@rjsf/core";
import type { ErrorSchema, RJSFSchema } from "@rjsf/utils";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { type ArgumentProblem, toErrorTree } from "./form-errors.ts";
import { toFormSchema } from "./form-schema.ts";
import { formTemplates } from "./form-templates.tsx";
import { createFormValidator } from "./form-validator.ts";
import { formWidgets } from "./form-widgets.tsx";

interface ArgumentFormProps {
  readonly schema: unknown;
  readonly value: unknown;
  readonly problems: Signal<readonly ArgumentProblem[]>;
  readonly onChange: (value: unknown) => void;
}

/** More fields than this get a filter. */
const mostUnfiltered = 12;
const validator = createFormValidator();

/** What is not touched is not sent: only defaults of the schema fill fields. */
const defaults = {
  emptyObjectFields: "skipEmptyDefaults",
  arrayMinItems: { populate: "never" },
  allOf: "populateDefaults",
  mergeDefaultsIntoFormData: "useFormDataIfPresent",
} as const;

/** The fields of a tool's arguments. */
export function ArgumentForm({ schema, value, problems, onChange }: ArgumentFormProps): JSX.Element {
  const formSchema = useMemo(() => toFormSchema(schema) as RJSFSchema, [schema]);
  const filter = useSignal("");
  const context = useMemo(() => ({ filter }), [filter]);
  const errors = useMemo(() => toErrorTree(problems.value) as ErrorSchema, [problems.value]);
  const count = Object.keys(formSchema.properties ?? {}).length;
  return (
    <>
      {count > mostUnfiltered ? (
        <div class="filter">
          <label for="field-filter">Filter {count} fields</label>
          <input
            id="field-filter"
            type="search"
            value={filter.value}
            onInput={({ currentTarget }) => (filter.value = currentTarget.value)}
          />
        </div>
      ) : null}
      <Form
        tagName="div"
        idPrefix="arguments"
        schema={formSchema}
        formData={value}
        validator={validator}
        widgets={formWidgets}
        templates={formTemplates}
        formContext={context}
        extraErrors={errors}
        noValidate
        noHtml5Validate
        showErrorList={false}
        experimental_defaultFormStateBehavior={defaults}
        onChange={({ formData }) => onChange(formData)}
      />
    </>
  );
}
