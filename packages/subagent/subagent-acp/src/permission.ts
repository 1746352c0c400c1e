/** Answers permission requests by policy, by the kinds of the options: their ids differ everywhere. */
import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from '@agentclientprotocol/sdk'

/** What a child that asks may do. */
export type PermissionPolicy = 'reject' | 'allow'

const preferred: Readonly<Record<PermissionPolicy, readonly PermissionOption['kind'][]>> = {
  reject: ['reject_once', 'reject_always'],
  allow: ['allow_once', 'allow_always'],
}

/** Selects the narrowest option that the policy stands for; cancels when there is none. */
export function answerPermission(
  policy: PermissionPolicy,
  { options }: RequestPermissionRequest,
): RequestPermissionResponse {
  for (const kind of preferred[policy]) {
    const option = options.find((candidate) => candidate.kind === kind)
    if (option !== undefined) {
      return { outcome: { outcome: 'selected', optionId: option.optionId } }
    }
  }
  return { outcome: { outcome: 'cancelled' } }
}
