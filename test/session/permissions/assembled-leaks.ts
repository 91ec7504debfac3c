/** Lines that read `secret/key` in some notation, assembled by a seeded generator. */
export function assembleLeaks(count: number, seed: number): readonly string[] {
  const random = randomFrom(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  return Array.from({ length: count }, () => pick(wrappers)(pick(readers)(spell(pick(paths), pick))));
}

type Pick = <T>(list: readonly T[]) => T;

const paths = [
  "secret/key",
  "./secret/key",
  "src/../secret/key",
  "docs/way/key",
  "src/deep/top/secret/key",
  "src/inner/top/secret/key",
  "secret/../secret/key",
];

const readers: readonly ((path: string) => string)[] = [
  (path) => `cat ${path}`,
  (path) => `cat docs/readme.md ${path}`,
  (path) => `cat -- ${path}`,
  (path) => `cat < ${path}`,
  (path) => `head -n 3 ${path}`,
  (path) => `tail -n +1 ${path}`,
  (path) => `grep T ${path}`,
  (path) => `grep -h -e T ${path} docs/readme.md`,
  (path) => `sed -n p ${path}`,
  (path) => `awk 1 ${path}`,
  (path) => `sort ${path}`,
  (path) => `cp ${path} out; cat out`,
  (path) => `tee out < ${path}`,
  (path) => `paste ${path}`,
  (path) => `tac ${path}`,
  (path) => `cut -c 1-99 ${path}`,
  (path) => `diff ${path} docs/readme.md`,
  (path) => `xargs -n 1 cat <<< ${path}`,
  (path) => `for f in ${path}; do cat "$f"; done`,
  (path) => `x=$(cat ${path}); echo "$x"`,
  (path) => `while read -r x; do echo $x; done < ${path}`,
  (path) => `set -- ${path}; cat "$@"`,
  (path) => `python3 -c 'import sys; print(open(sys.argv[1]).read())' ${path}`,
];

const wrappers: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line,
  (line) => `true && ${line}`,
  (line) => `false || ${line}`,
  (line) => `(${line})`,
  (line) => `{ ${line}; }`,
  (line) => `if true; then ${line}; fi`,
  (line) => `echo "$(${line})"`,
  (line) => `${line} | cat`,
  (line) => `ls > /dev/null; ${line}`,
  (line) => `cd src; cd ..; ${line}`,
  (line) => `${line} 2>&1`,
  (line) => `true\n${line}`,
  (line) => `f() { ${line}; }; f`,
  (line) => `eval '${line.replaceAll("'", `'"'"'`)}'`,
  (line) => `bash -c '${line.replaceAll("'", `'"'"'`)}'`,
];

/** The same path, with one of its names possibly as a glob, in braces, in quotes or with a variable. */
function spell(path: string, pick: Pick): string {
  const names = path.split("/");
  const at = names.indexOf(pick(["secret", "key", "way"]));
  if (at !== -1) names[at] = pick(disguises)(names[at]!);
  return pick([
    (text: string) => text,
    (text) => `"$PWD"/${text}`,
    (text) => `~+/${text}`,
    (text) => `$PWD/${text}`,
    (text) => `./${text}`,
    (text) => `.//${text}`,
  ])(names.join("/"));
}

const disguises: readonly ((name: string) => string)[] = [
  (name) => `${name[0]}*`,
  (name) => `${name.slice(0, -1)}?`,
  (name) => `[${name[0]}]${name.slice(1)}`,
  (name) => `[!x]${name.slice(1)}`,
  (name) => `[[:alpha:]]${name.slice(1)}`,
  (name) => `{${name},}`,
  (name) => `{x,${name}}`,
  (name) => `${name[0]}{x,${name.slice(1)}}`,
  (name) => `'${name}'`,
  (name) => `"${name[0]}"${name.slice(1)}`,
  (name) => `\\${name}`,
  (name) => `$'${name}'`,
  (name) => `$(echo ${name})`,
  (name) => `\`echo ${name}\``,
  (name) => `\${none:-${name}}`,
  (name) => `${name}$none`,
  (name) => `*${name.slice(-2)}`,
  (name) => `${name[0]}\\\n${name.slice(1)}`,
];

function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
