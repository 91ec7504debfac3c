import { defineTool } from "skillhost";
import { z } from "zod";
// The next call uses new facts as soon as this file is saved.
import facts from "./_facts.json" with { type: "json" };

const known = new Map(Object.entries(facts).map(([topic, fact]) => [topic.toLowerCase(), fact]));

export default defineTool("lookup_fact", {
  title: "Look up a fact",
  description: `Returns one fact about a topic from a fixed table. The table has these topics only: ${Object.keys(facts).join(", ")}.`,
  parameters: z.object({
    topic: z.string().trim().min(1).max(100).describe('Topic to look up, for example "Laravel". Case-insensitive.'),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  handler({ topic }) {
    const fact = known.get(topic.toLowerCase());
    if (fact === undefined)
      return { textResultForLlm: `No fact stored for ${topic}.`, resultType: "failure", sessionLog: `lookup_fact: missing topic ${topic}` };
    return {
      textResultForLlm: fact,
      resultType: "success",
      sessionLog: `lookup_fact: served ${topic}`,
      toolTelemetry: { length: fact.length },
    };
  },
});
