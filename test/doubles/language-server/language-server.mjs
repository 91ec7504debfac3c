import { runDouble } from "./run-double.ts";

runDouble();
