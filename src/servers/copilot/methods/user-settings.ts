import { badParams, refused } from "../connection/params.ts";
import { readUserSettings, type UserSettings, writeUserSettings } from "../sessions/user-settings.ts";
import type { MethodFamily } from "./method.ts";

/** The settings of the user that clients may change; all others come from skillhost.json. */
export const userSettings: MethodFamily = {
  "user.settings.get"({ server }) {
    const { model } = readUserSettings(server.options);
    return { settings: { model: { value: model ?? null, default: null, isDefault: model === undefined } } };
  },
  async "user.settings.set"({ server, params }) {
    const settings = params.record("settings");
    const others = Object.keys(settings).filter((name) => name !== "model");
    if (others.length > 0) {
      throw refused(
        params.method,
        `${others.join(", ").slice(0, 200)} would have no effect; only model can be set. Use skillhost.json for settings of skillhost.`,
      );
    }
    const { model } = settings;
    if (model !== undefined && model !== null && (typeof model !== "string" || model === "")) {
      throw badParams(params.method, "settings.model must be the id of a model, or null.");
    }
    const before = readUserSettings(server.options);
    const next: UserSettings = model === undefined ? before : typeof model === "string" ? { model } : {};
    if (next.model !== before.model) await writeUserSettings(server.options, next);
    return { shadowedKeys: [] };
  },
  // The file is read whenever a setting is needed.
  "user.settings.reload": () => undefined,
};
