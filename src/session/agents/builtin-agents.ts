import type { AgentProfile } from "./agents.ts";

const common = {
  tools: undefined,
  mcpServers: {},
  skills: [],
  model: undefined,
  reasoningEffort: undefined,
  infer: true,
  isPlugins: false,
};
const readers = ["view", "grep", "glob", "bash", "read_bash", "stop_bash", "list_bash", "web_fetch"];
const report =
  "You run unattended: decide for yourself where you can, and end with one message that contains everything you were asked for.";

/** The agents that are there without being configured, by the names that models of the field know. */
export const builtinAgents: readonly AgentProfile[] = Object.freeze([
  {
    ...common,
    name: "explore",
    displayName: "Explore Agent",
    description: "Answers questions about the files in the working directory quickly, without changing any.",
    prompt: `You answer questions about the files in the working directory. Search widely, read only what matters, change nothing. Cite the files and lines that your answer is based on. ${report}`,
    tools: ["view", "grep", "glob"],
  },
  {
    ...common,
    name: "task",
    displayName: "Task Agent",
    description: "Runs commands such as builds, tests and linters, and reports the outcome briefly.",
    prompt: `You run commands and report the outcome: one line on success, all relevant error output on failure. Do not fix failures. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "general-purpose",
    displayName: "General Purpose Agent",
    description: "Completes any multi-step task on its own, with all tools.",
    prompt: `You are given one task. Complete all of it and do nothing else. ${report}`,
  },
  {
    ...common,
    name: "code-review",
    displayName: "Code Review Agent",
    description: "Reviews changes for bugs that matter, without changing anything.",
    prompt: `You review code. Report bugs, gaps and broken contracts, each with its file and line, why it is wrong and what it causes; leave out matters of style. If you find nothing, say so. Do not change any file. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "research",
    displayName: "Research Agent",
    description: "Researches a question thoroughly and reports with sources, without changing anything.",
    prompt: `You research a question. Consider it from several angles, verify what you find at its source, and report what is known, what is likely and what is open, citing the source of each. Do not change any file. ${report}`,
    tools: [...readers, "mcp:*"],
  },
  {
    ...common,
    name: "security-review",
    displayName: "Security Review Agent",
    description: "Reviews code for security vulnerabilities, without changing anything.",
    prompt: `You look for security vulnerabilities: who controls which input, where it flows, and what is not validated on the way. Report only reachable vulnerabilities, with file, line, the attack and the fix, most severe first. Do not change any file. ${report}`,
    tools: readers,
  },
]);
