/** The sentences a model reads when a tool's answer itself has nothing to show. One table, so that none is written twice. */
export const resultText = {
  noResult: "Tool returned no result",
  threw: "Invoking this tool produced an error. Detailed information is not available.",
  notJson: "Tool returned a result that cannot be written as JSON.",
  unreadable: "Tool returned a result that cannot be read.",
  failedSilently: "Tool reported an error without saying what went wrong.",
  succeededSilently: "success",
} as const;
