/** Differences that stay, and why. */
interface KnownDifferences {
  readonly reason: string;
  /** Lines of `compareRuns`; `*` stands for any text. */
  readonly differences: readonly string[];
  /** The programs that they are allowed in. Default: all. */
  readonly guides?: readonly string[];
}

/** Members of an event that only the official runtime has. */
function absent(event: string, members: string): readonly string[] {
  return members.split(" ").map((member) => `${event}.data.${member}: -`);
}

/** Members of an event that only skillhost has. */
function added(event: string, members: string): readonly string[] {
  return members.split(" ").map((member) => `${event}.data.${member}: +`);
}

function differing(event: string, members: string): readonly string[] {
  return members.split(" ").map((member) => `${event}.data.${member}: differs`);
}

/** docs/copilot-sdk.md says the same for users, under "What is different". */
export const knownDifferences: readonly KnownDifferences[] = [
  {
    reason: "Optional members about GitHub's billing, routing, experiments and telemetry, which mean nothing for other endpoints.",
    differences: [
      ...absent("assistant.message", "rte serverTools"),
      ...absent("assistant.reasoning", "rte"),
      ...absent("assistant.usage", "cost frontierSource isAuto quotaSnapshots rte"),
      ...absent("session.managed_settings_resolved", "policyHelperManaged sandboxEnabledByUndeterminedPolicy"),
      ...absent("session.resume", "alreadyInUse contextTier eventsFileSizeBytes remoteSteerable sessionLimits"),
      ...absent("session.start", "alreadyInUse contextTier remoteSteerable"),
      ...absent("session.shutdown", "agentMetrics eventsFileSizeBytes totalNanoAiu totalPremiumRequests modelMetrics.*.totalNanoAiu"),
      ...differing("session.shutdown", "modelMetrics.*.requests.cost"),
      ...absent("tool.execution_complete", "rte toolTelemetry.metrics toolTelemetry.properties toolTelemetry.restrictedProperties"),
      "events - session.usage_checkpoint",
    ],
  },
  {
    reason: "Optional members that repeat what another event says: the model, the turn, the mode, the size of the context.",
    differences: [
      ...absent("assistant.message", "originatingMessageId toolRequests[].intentionSummary toolRequests[].toolTitle"),
      ...absent("assistant.usage", "cacheDetailsReported contentFilterTriggered interTokenLatencyMs maxOutputTokens outputTtftMs"),
      ...absent("assistant.usage", "reasoningSummary reasoningTokens"),
      ...absent("permission.requested", "agentMode"),
      ...absent("session.compaction_complete", "behaviorModelId compactionTokensUsed.model conversationTokens systemTokens tokenLimit"),
      ...absent("session.compaction_complete", "toolDefinitionsTokens"),
      ...absent("session.idle", "mode"),
      ...absent("session.model_change", "contextTier reasoningEffort source"),
      ...absent(
        "session.shutdown",
        "conversationTokens currentTokens systemTokens toolDefinitionsTokens modelMetrics.*.usage.reasoningTokens",
      ),
      ...absent("session.usage_info", "isInitial"),
      ...absent("skill.invoked", "allowedTools model pluginName pluginVersion"),
      ...absent("subagent.completed", "firstDispatchedModel modelSelectionSource"),
      ...absent("subagent.started", "agentType executionMode modelSelectionSource resumable taskModelSource"),
      ...absent("system.message", "interactionId"),
      ...absent("tool.execution_complete", "interactionId model result.contents shellExecution"),
      ...absent("tool.execution_start", "mcpConfigServerName mcpConfigSource mcpTransport shellToolInfo toolTitle"),
      ...absent("user.message", "delivery interactionId messageId parentAgentTaskId supportedNativeDocumentMimeTypes turnId"),
      ...absent("user_input.requested", "choices"),
    ],
  },
  {
    reason: "Members that skillhost adds, as earlier official runtimes did, or for programs that show what is asked.",
    differences: [
      ...added("assistant.message", "chunkCount outputTokens"),
      ...added("assistant.turn_end", "model"),
      ...added("assistant.turn_start", "model"),
      ...added("assistant.usage", "timeToFirstTokenMs"),
      ...added("elicitation.requested", "mode"),
      ...added("hook.start", "input.timestamp input.toolArgs input.toolName"),
      ...added("permission.requested", "permissionRequest.description permissionRequest.toolArgs permissionRequest.toolName"),
      ...added("permission.requested", "promptRequest.*"),
      ...added("session.compaction_complete", "trigger"),
      ...added("session.compaction_start", "model tokenLimit trigger"),
      ...added("session.mcp_server_status_changed", "error"),
      ...added("session.mcp_servers_loaded", "servers[].source servers[].transport"),
      ...added("session.resume", "continuePendingWork"),
      ...added("session.tools_updated", "version"),
      ...added("tool.execution_complete", "arguments sessionLog toolTelemetry.exitCode"),
      ...added("user.message", "agentMode attachments attachments[].displayName"),
      "output ? form: *",
      "output ? permission: shell *",
      "output ? permission: write *",
    ],
  },
  {
    reason: "What each runtime says of itself: its name and version, its folders, its instructions, its built-in tools and their texts.",
    differences: [
      ...differing("hook.start", "input.transcriptPath"),
      ...differing("permission.requested", "*.intention *.diff"),
      ...differing("session.compaction_complete", "checkpointPath"),
      ...differing("session.start", "copilotVersion producer"),
      ...differing("system.message", "content"),
      ...differing("tool.execution_complete", "result.detailedContent"),
      "request tools + write_bash",
    ],
  },
  {
    reason: "Hints for GitHub's model endpoint, and sampling that the user did not choose. Elsewhere the endpoint's own defaults count.",
    differences: [
      "request messages[].__copilotMessageSource: -",
      "request messages[].copilot_cache_control: -",
      "request messages[].content[].cache_control: +",
      "request tool.copilot_cache_control: -",
      "request tool.copilot_mcp_server_name: -",
      ...["frequency_penalty", "presence_penalty", "prompt_cache_key", "reasoning", "snippy", "stream", "temperature", "top_p"].map(
        (name) => `request.${name}: -`,
      ),
    ],
  },
  {
    reason:
      "The official runtime adds GitHub's MCP server to every session, and emits its states; skillhost adds it where a token and an API are set.",
    differences: [
      "announced - session.mcp_server_status_changed",
      "announced - session.mcp_servers_loaded",
      "announced - session.mcp_server_removed",
      "output - server: github-mcp-server failed",
      "session.mcp_server*: *",
    ],
  },
  {
    reason: "The system message is emitted when it has changed, not again with each message of the user.",
    differences: ["events - system.message", "output ? history: *"],
  },
  {
    reason: "That no managed settings apply is said when a session is created, too.",
    differences: ["announced + session.managed_settings_resolved"],
  },
  {
    reason: "The number of measurements of the context, depends on what the endpoint counts itself.",
    differences: ["events ? session.usage_info"],
  },
  {
    reason: 'There is no automatic choice of a model, so "auto" is not listed, and a session without a model has the first that is listed.',
    differences: [
      "output ? models: *",
      ...differing("assistant.message", "model"),
      ...differing("assistant.usage", "model"),
      "request.model: differs",
      ...differing("session.shutdown", "currentModel"),
      "session.shutdown.data.modelMetrics.claude-sonnet-4*: ?",
      ...differing("session.tools_updated", "model"),
      ...differing("session.model_change", "newModel previousModel"),
      "events + session.model_change",
      "announced + session.tools_updated",
    ],
    guides: ["getting-started", "errors", "providers"],
  },
  {
    reason: 'A provider of the type "azure" is the client\'s, too; the official runtime says that of the other types only.',
    differences: differing("assistant.usage", "isByok"),
    guides: ["providers"],
  },
  {
    reason: "A model of a named provider is called by its own id once it is selected.",
    differences: [
      ...differing("session.start", "selectedModel"),
      ...differing("session.usage_info", "messagesLength"),
      "user.message.data.transformedContent: differs",
      "request messages[].content: differs",
    ],
    guides: ["providers"],
  },
  {
    reason: "Errors say what to do, and the endpoint that answered.",
    differences: ["output ? refused failed: *"],
    guides: ["errors"],
  },
  {
    reason: "Which tools an option switches off is not announced.",
    differences: ["announced - session.info"],
    guides: ["custom-agents", "mcp-servers", "providers", "permissions"],
  },
  {
    reason: "An unknown section of a system message, and a model without known token counts, cause no warning.",
    differences: ["announced - session.warning"],
    guides: ["system-message", "providers"],
  },
  {
    reason: "Results of MCP tools are the server's own text: no name of the server before an error, and structured content beside it.",
    differences: ["tool.execution_complete.data.*.*: differs", "request messages[].content: differs"],
    guides: ["mcp-servers"],
  },
  {
    reason: "A sub-agent is known by its call's id. What is asked for it names it, and it is not announced as selected and configured.",
    differences: [
      "*.agentId: differs",
      ...differing("user.message", "source"),
      ...differing("assistant.usage", "initiator"),
      "events - session.model_change of a sub-agent",
      "events - subagent.* of a sub-agent",
    ],
    guides: ["custom-agents"],
  },
  {
    reason: "Sub-agents may start further agents, down to the session's limit, and new tools are not announced to the model.",
    differences: [
      "request tools + *_agent*",
      "request tools + task",
      "user.message.data.transformedContent: differs",
      "request messages[].content: differs",
    ],
    guides: ["custom-agents"],
  },
  {
    reason:
      "What a hook answers is shown as it answered, and the reason of a blocking onAgentStop is not a prompt of the user: hooks do not change it, and it has no date.",
    differences: [
      "hook.*",
      "events ? hook.*",
      "events ? user.message",
      "events ? system.message",
      "output - prompt: *",
      "output - end: complete",
      "assistant.*.data.turnId: differs",
      ...differing("assistant.usage", "initiator"),
      ...differing("user.message", "content delivery transformedContent"),
      ...differing("session.title_changed", "title"),
      "request messages[].content: differs",
    ],
    guides: ["hooks"],
  },
  {
    reason:
      "approve-for-session without a rule allows the tool's further calls of that kind, as the guide says; the official runtime asks again.",
    differences: ["output - permission: write *"],
    guides: ["permissions"],
  },
  {
    reason: "Commands are described by what a shell would do with them, and their output and files have texts and events of skillhost.",
    differences: [
      "permission.requested.data.*: differs",
      "permission.requested.data.permissionRequest.possiblePaths[]: +",
      "events - sandbox.decision",
      "events + session.workspace_file_changed",
      "announced - session.background_tasks_changed",
      "output - <shellId: 0 completed with exit code 0>",
      "output ? tool: true *",
      ...differing("tool.execution_complete", "result.content"),
      ...differing("session.shutdown", "codeChanges.linesAdded"),
      "request messages[].content: differs",
    ],
    guides: ["permissions"],
  },
  {
    reason: 'With `askUserVariant: "elicitation"` the model gets the tool ask_user, as the guide says; the official runtime offers none.',
    differences: [
      "announced + capabilities.changed",
      "elicitation.completed.data.*",
      "events + elicitation.*",
      "request tools + ask_user",
      "request messages[].content: differs",
      "tool.execution_complete.data.*",
    ],
    guides: ["user-input"],
  },
  {
    reason: "A file's last line is counted when it has text.",
    differences: [
      ...differing("user.message", "attachments[].taggedFilesEntry transformedContent"),
      "request messages[].content: differs",
      "request messages[].content[].text: differs",
    ],
    guides: ["attachments"],
  },
  {
    reason: "A compaction counts the system message and its own request, and titles its checkpoint itself.",
    differences: [
      "output ? compacted: *",
      ...differing("session.compaction_complete", "messagesRemoved tokensRemoved"),
      ...differing("session.usage_info", "messagesLength"),
      "announced + session.title_changed",
      "request messages[].content: differs",
    ],
    guides: ["infinite-sessions"],
  },
  {
    reason: "A skill is announced before its call is complete, with the text that the model reads, and all paths are absolute.",
    differences: [
      "events ? tool.execution_complete",
      "skill.invoked.data.*",
      "session.skills_loaded.data.*",
      "announced + commands.changed",
      "request messages[].content: differs",
    ],
    guides: ["skills-and-commands"],
  },
  {
    reason:
      "A steering message is taken before the next turn begins, and an aborted call is completed instead of named by agent.interrupted.",
    differences: [
      "events ? user.message",
      "events - agent.interrupted",
      "events + tool.execution_complete",
      ...differing("assistant.usage", "initiator"),
      ...differing("session.usage_info", "messagesLength"),
      ...added("user.message", "transformedContent"),
      "request messages[].content: differs",
    ],
    guides: ["steering"],
  },
  {
    reason:
      "Spans have no costs, and those of messages say the mode instead of the turn. The first chunk is measured without streaming, too. The official runtime writes some spans twice, one of them incomplete.",
    differences: [
      "external_tool.requested.data.traceparent: differs",
      "output + attribute: chat * gen_ai.response.time_to_first_chunk",
      "output - attribute: * github.copilot.cost",
      "output - buckets: github.copilot.mcp.server.connection.count undefined",
      "output ? event: invoke_agent github.copilot.user.message *",
      "output - event: invoke_agent github.copilot.mcp.server.lifecycle *",
      "output ? metric: gen_ai.client.operation.duration s GenAI operation duration. *",
      "output - metric: github.copilot.mcp.server.connection.count *",
    ],
    guides: ["telemetry"],
  },
];
