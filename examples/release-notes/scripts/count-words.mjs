import { text } from "node:stream/consumers";

// The text comes on stdin, so that it can be of any length and cannot become an option.
const words = (await text(process.stdin)).split(/\s+/).filter(Boolean);
process.stdout.write(String(words.length));
