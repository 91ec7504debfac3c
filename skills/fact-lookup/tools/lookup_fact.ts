import { defineTool } from "skillhost";
import { z } from "zod";
// Saving this file is enough for the next call to know its new facts.
import facts from "./_facts.json" with { type: "json" };

const known = new Map(Object.entries(facts).map(([topic, fact]) => [topic.toLowerCase(), fact]));

export default defineTool("lookup_fact", {
  title: "Look up a fact",
  description: `Gives one fact about a topic from a fixed table. It knows these topics and no others: ${Object.keys(facts).join(", ")}.`,
  parameters: z.object({
    topic: z.string().trim().min(1).max(100).describe('The topic to look up, for example "Laravel". Capital letters make no difference.'),
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
