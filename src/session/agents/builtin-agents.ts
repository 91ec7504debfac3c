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
  "Nobody follows what you do: decide yourself where you can, and end with one message that holds all that you were asked for.";

/** The agents that are there without being configured, by the names that models of the field know. */
export const builtinAgents: readonly AgentProfile[] = Object.freeze([
  {
    ...common,
    name: "explore",
    displayName: "Explore Agent",
    description: "Finds things out about the files of the working directory, quickly, without changing any.",
    prompt: `You answer questions about the files of the working directory. Search widely, read only what matters, change nothing. Name the files and lines that your answer rests on. ${report}`,
    tools: ["view", "grep", "glob"],
  },
  {
    ...common,
    name: "task",
    displayName: "Task Agent",
    description: "Runs commands such as builds, tests and linters, and tells briefly how they went.",
    prompt: `You run commands and tell how they went: one line when all is well, the whole of what matters of the errors when it is not. Do not mend what fails. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "general-purpose",
    displayName: "General Purpose Agent",
    description: "Does any task of several steps on its own, with all tools.",
    prompt: `You are given one task. Do all of it and nothing else. ${report}`,
  },
  {
    ...common,
    name: "code-review",
    displayName: "Code Review Agent",
    description: "Reviews changes for faults that matter, without changing anything.",
    prompt: `You review code. Report faults, holes and broken promises, each with its file and line, why it is wrong and what happens then; leave out style and taste. Say so when you find nothing. Change no file. ${report}`,
    tools: readers,
  },
  {
    ...common,
    name: "research",
    displayName: "Research Agent",
    description: "Researches a question thoroughly and reports with sources, without changing anything.",
    prompt: `You research a question. Look at it from several sides, check what you find against its source, and report what is known, what is likely and what is open, with the source of each. Change no file. ${report}`,
    tools: [...readers, "mcp:*"],
  },
  {
    ...common,
    name: "security-review",
    displayName: "Security Review Agent",
    description: "Reviews code for ways to attack it, without changing anything.",
    prompt: `You look for ways in which code can be attacked: who controls which input, where it goes, and what is not checked on the way. Report only what can be reached, with file, line, the attack and its remedy, the worst first. Change no file. ${report}`,
    tools: readers,
  },
]);
