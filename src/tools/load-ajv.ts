import { createRequire } from "node:module";
import type * as Draft07 from "ajv";
import type { Ajv, Options } from "ajv";
import type * as Draft2019 from "ajv/dist/2019.js";
import type * as Draft2020 from "ajv/dist/2020.js";
import type * as Formats from "ajv-formats/dist/formats.js";
import type { Dialect } from "./repair-schema.ts";

// Loaded when the first schema is looked at: that takes longer than most of a host's start, and many sessions check none.
const load: NodeJS.Require = createRequire(import.meta.url);

/** A validator of a schema's own draft. */
export function makeAjv(dialect: Dialect, options: Options): Ajv {
  // Each class has a name first: TypeScript 7 drops the parentheses of `new (call() as Type).Class()`.
  if (dialect === "draft-07") {
    const { Ajv: Validator } = load("ajv") as typeof Draft07;
    return new Validator(options);
  }
  if (dialect === "2019-09") {
    const { Ajv2019 } = load("ajv/dist/2019.js") as typeof Draft2019;
    return new Ajv2019(options);
  }
  const { Ajv2020 } = load("ajv/dist/2020.js") as typeof Draft2020;
  return new Ajv2020(options);
}

/** What texts of a format look like, such as dates. */
export function allFormats(): typeof Formats.fullFormats {
  return (load("ajv-formats/dist/formats.js") as typeof Formats).fullFormats;
}

/** The reference that led nowhere, if that is what went wrong. */
export function missingRefOf(error: unknown): string | undefined {
  const { MissingRefError } = (load("ajv") as typeof Draft07).Ajv;
  return error instanceof MissingRefError ? error.missingRef : undefined;
}
