import { defineTool } from "skillhost";
import { z } from "zod";

const Report = z.object({
  current_condition: z.array(z.object({ temp_C: z.string(), temp_F: z.string(), weatherDesc: z.array(z.object({ value: z.string() })) })),
});

// The types of the handler's arguments come from the schema, and so do the checks before it runs.
export default defineTool("get_weather", {
  description: "Gives the weather in a city right now: the temperature and a few words about the sky.",
  parameters: z.object({
    city: z.string().trim().min(1).describe('The city, with its country if the name is ambiguous, for example "Paris, France".'),
    unit: z.enum(["celsius", "fahrenheit"]).default("celsius").describe("The unit of the temperature."),
  }),
  annotations: { readOnlyHint: true, openWorldHint: true },
  timeout: 15_000,
  async handler({ city, unit }, { signal }) {
    const base = process.env["WEATHER_URL"] ?? "https://wttr.in";
    const response = await fetch(`${base}/${encodeURIComponent(city)}?format=j1`, { signal });
    if (response.status === 404)
      return { textResultForLlm: `No weather is known for ${city}. Check the spelling or name a larger city.`, resultType: "failure" };
    if (!response.ok) throw new Error(`The weather service answered with status ${response.status}.`);
    const [now] = Report.parse(await response.json()).current_condition;
    if (now === undefined) return { textResultForLlm: `The weather service has no report for ${city} right now.`, resultType: "failure" };
    return {
      city,
      temperature: Number(unit === "celsius" ? now.temp_C : now.temp_F),
      unit,
      sky: now.weatherDesc.map(({ value }) => value).join(", "),
    };
  },
});
