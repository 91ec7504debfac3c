/** A problem with arguments as the host reports it: the place is a JSON pointer. */
export interface ArgumentProblem {
  readonly path: string;
  readonly message: string;
}

export function pointerParts(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer
    .replace(/^\//, "")
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Problems in the tree that the form shows beside its fields. */
export function toErrorTree(problems: readonly ArgumentProblem[]): object {
  const root = newNode();
  for (const { path, message } of problems) {
    let node = root;
    for (const part of pointerParts(path)) {
      // Names come from arguments: `__proto__` is a name like others here.
      if (!Object.hasOwn(node, part)) Object.defineProperty(node, part, { value: newNode(), enumerable: true });
      node = node[part] as ErrorNode;
    }
    node.__errors.push(message);
  }
  return root;
}

type ErrorNode = { __errors: string[] } & { [name: string]: unknown };

function newNode(): ErrorNode {
  return { __errors: [] };
}
