import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, syntaxHighlighting, syntaxTree } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type ArgumentProblem, pointerParts } from "./form-errors.ts";

interface ArgumentEditorProps {
  readonly text: string;
  readonly syntaxError: string | undefined;
  readonly problems: readonly ArgumentProblem[];
  readonly onChange: (text: string) => void;
}

/** The arguments as JSON. What the host reports stands at its place in the text. */
export function ArgumentEditor({ text, syntaxError, problems, onChange }: ArgumentEditorProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const changed = useRef(onChange);
  changed.current = onChange;

  useEffect(() => {
    const editor = new EditorView({ parent: place.current!, state: EditorState.create({ doc: text, extensions: extensions(changed) }) });
    view.current = editor;
    return () => editor.destroy();
    // The editor lives as long as the component: later texts are changes of its document.
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined || editor.state.doc.toString() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined) return;
    const whole = { from: 0, to: Math.min(1, editor.state.doc.length) };
    const found: Diagnostic[] =
      syntaxError === undefined
        ? problems.map(({ path, message }) => ({
            ...(rangeOf(editor.state, path) ?? whole),
            severity: "error",
            message: `${path} ${message}`,
          }))
        : [{ ...syntaxRange(editor.state), severity: "error", message: syntaxError }];
    editor.dispatch(setDiagnostics(editor.state, found));
  }, [text, syntaxError, problems]);

  return <div ref={place} class="editor" />;
}

function extensions(changed: { readonly current: (text: string) => void }) {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? "";
  return [
    EditorView.cspNonce.of(nonce),
    EditorView.contentAttributes.of({ "aria-label": "Arguments as JSON" }),
    lineNumbers(),
    history(),
    drawSelection(),
    bracketMatching(),
    json(),
    // Classes, whose colours inspector.css gives for light and dark.
    syntaxHighlighting(classHighlighter),
    lintGutter(),
    EditorView.lineWrapping,
    // Tab leaves the editor: a page that is used with the keyboard alone must not keep the focus.
    keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed.current(update.state.doc.toString());
    }),
  ];
}

/** The place of a value, or of the innermost one around it that exists. */
function rangeOf(state: EditorState, pointer: string): { from: number; to: number } | undefined {
  let node = syntaxTree(state).topNode.firstChild;
  for (const part of pointerParts(pointer)) {
    const next = node?.name === "Array" ? itemAt(node, Number(part)) : node === null ? null : memberOf(state, node, part);
    if (next === null) break;
    node = next;
  }
  return node === null ? undefined : { from: node.from, to: node.to };
}

type SyntaxNode = NonNullable<ReturnType<typeof syntaxTree>["topNode"]["firstChild"]>;

function memberOf(state: EditorState, object: SyntaxNode, name: string): SyntaxNode | null {
  for (const property of object.getChildren("Property")) {
    const key = property.getChild("PropertyName");
    if (key !== null && state.sliceDoc(key.from, key.to) === JSON.stringify(name)) return property.lastChild;
  }
  return null;
}

function itemAt(list: SyntaxNode, index: number): SyntaxNode | null {
  let at = 0;
  for (let child = list.firstChild; child !== null; child = child.nextSibling) {
    if (["[", "]", ","].includes(child.name)) continue;
    if (at++ === index) return child;
  }
  return null;
}

function syntaxRange(state: EditorState): { from: number; to: number } {
  const cursor = syntaxTree(state).cursor();
  do {
    if (cursor.type.isError) return { from: cursor.from, to: Math.max(cursor.to, Math.min(cursor.from + 1, state.doc.length)) };
  } while (cursor.next());
  return { from: 0, to: Math.min(1, state.doc.length) };
}
