#!/usr/bin/env node
import { main } from "./main.ts";
import { createProcessIo } from "./process-io.ts";

const { io, leave } = createProcessIo(process);
process.exitCode = await main(process.argv.slice(2), io);
leave();
