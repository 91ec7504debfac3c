import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Bridge } from "./bridge.ts";
import type { BridgeScenario } from "./bridge-scenarios.ts";

/** How the server's model calls the tools of an editor, in part through the server's wrappers. */
export const editorScenarios: readonly BridgeScenario[] = [
  {
    name: "a turn continues after a rejected call, whether the server asks before the call or not",
    run: async (server) => {
      const onPermissionRequest = (): object => ({ kind: "reject", feedback: "Not now." });
      await using bridge = await Bridge.start(server, { editor: true, session: { onPermissionRequest } });
      const file = join(bridge.folder, "new.txt");
      const calls: readonly (readonly [string, object])[] = [
        ["create_file", { filePath: file, content: "made" }],
        ["run_in_terminal", { command: `touch ${file}`, explanation: "Touch it.", isBackground: false }],
      ];
      const seen: unknown[] = [];
      for (const [name, args] of calls) {
        const requests = bridge.backend.asked.length;
        bridge.backend.answer({ toolCalls: [{ id: `call-${name}`, name, arguments: args }] }, { content: "I see." });
        const { outcome, text } = await bridge.agent.send("Do it.");
        seen.push([name, outcome, text.endsWith("I see."), bridge.backend.asked.length - requests, existsSync(file)]);
      }
      return seen;
    },
    expected: [
      ["create_file", "completed", true, 2, false],
      ["run_in_terminal", "completed", true, 2, false],
    ],
  },
  {
    name: "each of an editor's tools runs, and the server sees what they write",
    run: async (server) => {
      await using bridge = await Bridge.start(server, { editor: true });
      const at = (name: string): string => join(bridge.folder, name);
      mkdirSync(at("src"));
      writeFileSync(at("src/sum.js"), "export const sum = (a, b) => a - b;\n");
      writeFileSync(at("src/sum.test.js"), "import './sum.js';\n");
      writeFileSync(at("notes.md"), "one\ntwo\nthree\n");
      const patch = `*** Begin Patch\n*** Update File: ${at("notes.md")}\n@@\n one\n-two\n+deux\n three\n*** End Patch`;
      const calls: readonly (readonly [string, object])[] = [
        ["create_directory", { dirPath: at("made") }],
        ["create_file", { filePath: at("made/new.txt"), content: "made\n" }],
        ["insert_edit_into_file", { filePath: at("made/new.txt"), code: "rewritten\n", explanation: "Rewrite it." }],
        ["replace_string_in_file", { filePath: at("src/sum.js"), oldString: "a - b", newString: "a + b", explanation: "Add." }],
        [
          "multi_replace_string",
          { replacements: [{ filePath: at("src/sum.js"), oldString: "(a, b)", newString: "(x, y)", explanation: "x" }] },
        ],
        ["apply_patch", { input: patch, explanation: "French." }],
        ["read_file", { filePath: at("src/sum.js"), startLineNumberBaseOne: 1, endLineNumberBaseOne: 5 }],
        ["list_dir", { path: bridge.folder }],
        ["file_search", { query: "**/*.js" }],
        ["grep_search", { query: "deux", isRegexp: false }],
        ["find_test_files", { filePaths: [at("src/sum.js")] }],
        ["run_in_terminal", { command: "printf '%s' all-right", explanation: "Say it.", isBackground: false }],
        ["run_tests", { command: "printf tested" }],
        ["fetch_web_page", { urls: ["http://127.0.0.1:1/"], query: "nothing" }],
        ["get_errors", { filePaths: [at("src/sum.js")] }],
      ];
      const toolCalls = calls.map(([name, args], index) => ({ id: `call-${index}`, name, arguments: args }));
      // The second answer is the result of insert_edit_into_file: the server asks its model to apply the edit.
      bridge.backend.answer({ toolCalls }, { content: "rewritten\n" }, { content: "Done." });
      const turn = await bridge.agent.send("Do it.");
      const excerptOf = (name: string, pattern: RegExp): unknown => {
        const text = bridge.results[calls.findIndex(([called]) => called === name)] ?? "";
        return pattern.exec(text)?.[0] ?? text.slice(0, 300);
      };
      return {
        statuses: Object.fromEntries(turn.calls.map(({ name, status }) => [name, status])),
        files: ["made/new.txt", "src/sum.js", "notes.md"].map((name) => existsSync(at(name)) && readFileSync(at(name), "utf8")),
        excerpts: {
          created: excerptOf("create_file", /made/),
          read: excerptOf("read_file", /x, y/),
          listed: excerptOf("list_dir", /notes\.md/),
          found: excerptOf("file_search", /sum\.js/),
          matched: excerptOf("grep_search", /deux/),
          tests: excerptOf("find_test_files", /sum\.test\.js/),
          terminal: excerptOf("run_in_terminal", /all-right/),
          ran: excerptOf("run_tests", /tested/),
        },
        twice: calls.map(([name]) => name).filter((name) => bridge.asked.filter(({ toolName }) => toolName === name).length > 1),
        kinds: [...new Set(bridge.asked.map(({ kind }) => kind))].sort(),
      };
    },
    expected: {
      statuses: {
        create_directory: "completed",
        create_file: "completed",
        insert_edit_into_file: "completed",
        replace_string_in_file: "completed",
        multi_replace_string: "completed",
        apply_patch: "completed",
        read_file: "completed",
        list_dir: "completed",
        file_search: "completed",
        grep_search: "completed",
        find_test_files: "completed",
        run_in_terminal: "completed",
        run_tests: "completed",
        fetch_web_page: "error",
        get_errors: "completed",
      },
      files: ["rewritten\n", "export const sum = (x, y) => a + b;\n", "one\ndeux\nthree\n"],
      excerpts: {
        created: "made",
        read: "x, y",
        listed: "notes.md",
        found: "sum.js",
        matched: "deux",
        tests: "sum.test.js",
        terminal: "all-right",
        ran: "tested",
      },
      // Three of the server's wrappers write with this tool.
      twice: ["insert_edit_into_file"],
      kinds: ["read", "shell", "url", "write"],
    },
  },
];
