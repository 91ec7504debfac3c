// What the modules of a skill need: a part of "skillhost" that loads in a few milliseconds, and the same functions.
export {
  type DefinedPrompt,
  definePrompt,
  type PromptArgumentOptions,
  type PromptMessageLike,
  type PromptOptions,
  type PromptReply,
} from "./tools/define/define-prompt.ts";
export {
  type DefinedResource,
  defineResource,
  type ListContext,
  type ListedResource,
  type ResourceContentsLike,
  type ResourceOptions,
  type ResourceReply,
} from "./tools/define/define-resource.ts";
export { type DefinedTool, defineTool, type ToolHandler, type ToolLike, type ToolOptions } from "./tools/define/define-tool.ts";
export * from "./tools/host-services.ts";
export type { CallResult, JsonSchema, PermissionRequest, Tool, ToolContext, ToolInvocation, ToolResult } from "./tools/tool.ts";
export * from "./tools/tool-signatures.ts";
