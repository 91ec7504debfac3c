import { defineTool } from "skillhost";
import { z } from "zod";

const Report = z.object({
  current_condition: z.array(z.object({ temp_C: z.string(), temp_F: z.string(), weatherDesc: z.array(z.object({ value: z.string() })) })),
});

// The schema validates the arguments before the handler runs and gives them their types.
export default defineTool("get_weather", {
  description: "Returns the current weather in a city: temperature and sky conditions.",
  parameters: z.object({
    city: z.string().trim().min(1).describe('Name of the city, with its country if ambiguous, for example "Paris, France".'),
    unit: z.enum(["celsius", "fahrenheit"]).default("celsius").describe("Unit of the temperature."),
  }),
  annotations: { readOnlyHint: true, openWorldHint: true },
  timeout: 15_000,
  async handler({ city, unit }, { signal }) {
    const base = process.env["WEATHER_URL"] ?? "https://wttr.in";
    const response = await fetch(`${base}/${encodeURIComponent(city)}?format=j1`, { signal });
    if (response.status === 404)
      return { textResultForLlm: `No weather found for ${city}. Check the spelling or try a larger city.`, resultType: "failure" };
    if (!response.ok) throw new Error(`The weather service returned status ${response.status}.`);
    const [now] = Report.parse(await response.json()).current_condition;
    if (now === undefined) return { textResultForLlm: `The weather service currently has no report for ${city}.`, resultType: "failure" };
    return {
      city,
      temperature: Number(unit === "celsius" ? now.temp_C : now.temp_F),
      unit,
      sky: now.weatherDesc.map(({ value }) => value).join(", "),
    };
  },
});
