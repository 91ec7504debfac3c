/**
 * What the application hands to the code of all tools, prompts and resources: `createHost({ services })` passes it, and
 * `invocation.services` is the same object. Declare yours, and both sides are checked:
 *
 * ```ts
 * declare module "skillhost" {
 *   interface HostServices { readonly db: Database }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add their members by module augmentation.
export interface HostServices {}

/**
 * What the application knows of one session, such as its user: `createSession({ context })` passes it, and `invocation.context` is
 * the same object. Declare yours as for `HostServices`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: applications add their members by module augmentation.
export interface CallerContext {}
