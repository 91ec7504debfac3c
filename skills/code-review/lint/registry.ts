import type { Rule } from "./rule.ts";
import { arrayRules } from "./rules/arrays.ts";
import { comparisonRules } from "./rules/comparisons.ts";
import { conditionRules } from "./rules/conditions.ts";
import { controlFlowRules } from "./rules/control-flow.ts";
import { counterRules } from "./rules/counters.ts";
import { duplicateRules } from "./rules/duplicates.ts";
import { errorRules } from "./rules/errors.ts";
import { leftoverRules } from "./rules/leftovers.ts";
import { logicRules } from "./rules/logic.ts";
import { loopRules } from "./rules/loops.ts";
import { nullishRules } from "./rules/nullish.ts";
import { precedenceRules } from "./rules/precedence.ts";
import { promiseValueRules } from "./rules/promise-values.ts";
import { promiseRules } from "./rules/promises.ts";
import { regexRules } from "./rules/regex.ts";
import { secretRules } from "./rules/secrets.ts";
import { securityRules } from "./rules/security.ts";
import { typeRules } from "./rules/types.ts";
import { unknownNameRules } from "./rules/unknown-names.ts";
import { untrustedRules } from "./rules/untrusted.ts";
import { variableRules } from "./rules/variables.ts";
import { webRules } from "./rules/web.ts";

/** Every rule there is. To add one, write it in the group it belongs to; it needs a case that fails and one that passes. */
export const rules: readonly Rule[] = [
  ...promiseRules,
  ...promiseValueRules,
  ...loopRules,
  ...counterRules,
  ...comparisonRules,
  ...precedenceRules,
  ...conditionRules,
  ...nullishRules,
  ...duplicateRules,
  ...controlFlowRules,
  ...logicRules,
  ...errorRules,
  ...arrayRules,
  ...securityRules,
  ...webRules,
  ...secretRules,
  ...untrustedRules,
  ...variableRules,
  ...unknownNameRules,
  ...regexRules,
  ...leftoverRules,
  ...typeRules,
];
