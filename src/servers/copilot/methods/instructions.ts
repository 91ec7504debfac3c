import { join, resolve } from "node:path";
import {
  findInstructionFiles,
  type InstructionFile,
  type InstructionLocation,
  type InstructionPlace,
  instructionFileNames,
  instructionFilesFor,
  instructionFolder,
  instructionPlaces,
} from "../../../session/prompt/instruction-files.ts";
import { userDirectoryOf } from "../request/apply-session-request.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Custom instructions: files of a project or a user that every agent reads. */
export const instructions: MethodFamily = {
  "session.instructions.getSources"({ server, params }) {
    const { config } = findSession(server, params).session;
    return { sources: instructionFilesFor(config.turn.customInstructions, config.workingDirectory).map((file) => describe(file)) };
  },
  "instructions.discover"(call) {
    const ofProjects = projectsOf(call).flatMap(({ project, places }) =>
      findInstructionFiles(places).map((file) => describe(file, project)),
    );
    return { sources: [...ofProjects, ...findInstructionFiles(hostPlaces(call)).map((file) => describe(file))] };
  },
  "instructions.getDiscoveryPaths"(call) {
    const ofProjects = projectsOf(call).flatMap(({ project, places }) => places.flatMap((place) => pathsOf(place, project)));
    return { paths: [...ofProjects, ...hostPlaces(call).flatMap((place) => pathsOf(place, undefined))] };
  },
};

interface Project {
  readonly project: string;
  readonly places: readonly InstructionPlace[];
}

function projectsOf({ params }: Call): readonly Project[] {
  return params.texts("projectPaths").map((project) => ({ project, places: instructionPlaces(resolve(project)) }));
}

function hostPlaces({ server, params }: Call): readonly InstructionPlace[] {
  if (params.flag("excludeHostInstructions")) return [];
  return [{ directory: userDirectoryOf(server.options.environment), location: "user" }];
}

function describe(file: InstructionFile, projectPath?: string): object {
  const { path, label, content, location, applyTo, description } = file;
  return {
    id: path,
    label,
    sourcePath: location === "user" ? path : label,
    content,
    type: typeOf(file),
    location: toWireLocation(location),
    ...(applyTo.length > 0 && { applyTo }),
    ...(description !== undefined && { description }),
    ...(projectPath !== undefined && { projectPath }),
  };
}

function typeOf({ label, location }: InstructionFile): string {
  if (location === "user") return "home";
  if (label.endsWith(".instructions.md")) return "vscode";
  return label === "CLAUDE.md" || label === "GEMINI.md" ? "model" : "repo";
}

/** The protocol has no location for folders that are named in addition to the project. */
function toWireLocation(location: InstructionLocation): string {
  return location === "extra" ? "user" : location;
}

function pathsOf({ directory, location }: InstructionPlace, projectPath: string | undefined): readonly object[] {
  const common = { location: toWireLocation(location), ...(projectPath !== undefined && { projectPath }) };
  const files = instructionFileNames.map((name, index) => ({
    path: join(directory, name),
    kind: "file",
    ...common,
    preferredForCreation: index === 0,
  }));
  return [...files, { path: join(directory, instructionFolder), kind: "directory", ...common, preferredForCreation: false }];
}
