import { type FieldReaders, fieldsReader, readFlag, readPositive, readText } from "../../base/read-fields.ts";

export interface LargeOutputOptions {
  /** False: results are never cut. Default: true. */
  readonly enabled?: boolean | undefined;
  /** Longer results go to a file. Default: 51,200. */
  readonly maxSizeBytes?: number | undefined;
  /** Where the files go. Default: the session's folder. */
  readonly outputDir?: string | undefined;
}

const fields: FieldReaders<LargeOutputOptions> = { enabled: readFlag, maxSizeBytes: readPositive, outputDir: readText };

/** @throws HostError `SESSION_OPTIONS` naming the field. */
export const readLargeOutput: (value: unknown, path: string) => LargeOutputOptions = fieldsReader(fields);
