import { defineTool } from "skillhost";
import { z } from "zod";
import { encodePng } from "./_png.ts";

export default defineTool("draw_swatch", {
  description: "Draws a square of one colour as a PNG image.",
  parameters: z.object({
    colour: z
      .string()
      .regex(/^#[0-9a-fA-F]{6}$/)
      .describe('Hexadecimal RGB colour, for example "#3366cc".'),
    size: z.number().int().min(1).max(512).default(64).describe("Side length in pixels."),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  handler({ colour, size }) {
    const [red = 0, green = 0, blue = 0] = Buffer.from(colour.slice(1), "hex");
    const data = encodePng(size, [red, green, blue]).toString("base64");
    // The text is for models that cannot see images.
    return {
      textResultForLlm: `A square of ${colour}, ${size} by ${size} pixels.`,
      binaryResultsForLlm: [{ type: "image", mimeType: "image/png", data, description: `A square of ${colour}` }],
    };
  },
});
