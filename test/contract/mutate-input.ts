const tokens = [
  ...[
    "",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    "\uFEFF",
    "\u2028",
    "\uD800",
    "\u{1F600}",
    "\u202E",
    "\t",
    " ",
    "---\n",
    "data: ",
    "event: x\n",
    "[DONE]",
  ],
  ...[
    '"',
    "'",
    "\\",
    "\\u0000",
    "\\uD800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "[[[[[[[[",
    "}}}}}}}}",
    "//",
    "/*",
    "#",
    "&a ",
    "*a",
    "!!js/function ",
    "<<: ",
    "|",
    ">-",
  ],
  ...[
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "9007199254740993",
    "0x10",
    "NaN",
    "1.",
    "-0",
    "Content-Length: 5\r\n\r\n",
    "Content-Length: -1\r\n\r\n",
  ],
  ...[
    "__proto__",
    "constructor",
    "toString",
    "../",
    "..\\",
    "/etc/passwd",
    "C:\\",
    "file:///",
    "http://[::1]/",
    "${A}",
    "${env:A:-b}",
    "$0",
    "{a}",
    "%2e%2e",
    "\u0000\u0001",
  ],
  ...["name", "type", "id", "error", "result", "method", "params", "tools", "x".repeat(300), "é".repeat(80)],
];

const odd: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, "", " ", "\0", "x".repeat(1_000), "../../x", "__proto__", "${A}"],
  ...[[], {}, [[]], [null], { a: {} }, { name: 1 }, { length: 5 }, { toJSON: 1 }, { toString: 1, valueOf: 1 }, [[[[[[[[]]]]]]]]],
];

/** A changed copy of one of the samples: in its structure if it is JSON, otherwise, and as often, in its bytes. */
export function mutate(samples: readonly Buffer[], random: (below: number) => number): Buffer {
  const sample = samples[random(samples.length)]!;
  const kind = random(20);
  if (kind === 0) return Buffer.from(Array.from({ length: random(80) }, () => random(256)));
  if (kind === 1) return Buffer.from(Array.from({ length: random(40) }, () => tokens[random(tokens.length)]).join(""));
  const structured = kind < 11 ? mutateJson(sample, random) : undefined;
  if (structured !== undefined && random(4) > 0) return structured;
  let bytes = structured ?? sample;
  for (let count = 1 + random(5); count > 0; count--) bytes = mutateBytes(bytes, samples, random);
  return bytes;
}

function mutateJson(sample: Buffer, random: (below: number) => number): Buffer | undefined {
  const first = sample[0];
  if (first !== 0x7b && first !== 0x5b) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(sample.toString("utf8"));
  } catch {
    return undefined;
  }
  for (let count = 1 + random(3); count > 0; count--) value = replaceOne(value, random, 0);
  return Buffer.from(JSON.stringify(value) ?? "null");
}

/** Replaces, removes, repeats or renames one value. */
function replaceOne(value: unknown, random: (below: number) => number, depth: number): unknown {
  if (typeof value !== "object" || value === null || (depth > 0 && random(4) === 0)) return odd[random(odd.length)];
  const isList = Array.isArray(value);
  const entries = Object.entries(value) as (readonly [string, unknown])[];
  if (entries.length === 0) return odd[random(odd.length)];
  const at = random(entries.length);
  const [key, inner] = entries[at]!;
  const changed: (readonly [string, unknown])[] = [...entries];
  const choice = random(10);
  if (choice === 0) changed.splice(at, 1);
  else if (choice === 1) changed.push([isList ? key : tokens[random(tokens.length)]!, inner]);
  else if (choice === 2) changed[at] = [tokens[random(tokens.length)]!, inner];
  else if (choice === 3) changed[at] = [key, value];
  else changed[at] = [key, replaceOne(inner, random, depth + 1)];
  return isList ? changed.map(([, each]) => each) : Object.fromEntries(changed);
}

function mutateBytes(bytes: Buffer, samples: readonly Buffer[], random: (below: number) => number): Buffer {
  const from = random(bytes.length + 1);
  const to = Math.min(bytes.length, from + random(random(4) === 0 ? 200 : 8));
  const head = bytes.subarray(0, from);
  const tail = bytes.subarray(to);
  switch (random(7)) {
    case 0:
      return Buffer.concat([head, tail]);
    case 1:
      return Buffer.concat([head, Buffer.from([random(256)]), bytes.subarray(Math.min(bytes.length, from + 1))]);
    case 2:
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from, to), tail]);
    case 3: {
      const other = samples[random(samples.length)]!;
      const start = random(other.length + 1);
      return Buffer.concat([head, other.subarray(start, start + random(200)), tail]);
    }
    case 4:
      return head;
    default:
      return Buffer.concat([head, Buffer.from(tokens[random(tokens.length)]!), tail]);
  }
}
