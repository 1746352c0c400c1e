/** Answers permission requests by policy, by the kinds of the options: their ids differ everywhere. */
import type { RequestPermissionResponse } from '@agentclientprotocol/sdk'
import { z } from 'zod'

/** What a child that asks may do. */
export type PermissionPolicy = 'reject' | 'allow'

/** Options of a kind that is unknown do no harm to the others. */
export const permissionRequest = z.object({
  options: z.array(z.object({ optionId: z.string(), kind: z.unknown().optional() })),
})

/** A request for permission, as far as its answer depends on it. */
export type PermissionRequest = z.infer<typeof permissionRequest>

/** The answer once nobody waits for the work any more. */
export const cancelledPermission: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }

const preferred: Readonly<Record<PermissionPolicy, readonly string[]>> = {
  reject: ['reject_once', 'reject_always'],
  allow: ['allow_once', 'allow_always'],
}

/** Whether an answer lets the agent do what it asked for. */
export function isAllowed(
  { options }: PermissionRequest,
  { outcome }: RequestPermissionResponse,
): boolean {
  if (outcome.outcome !== 'selected') return false
  const chosen = options.find(({ optionId }) => optionId === outcome.optionId)
  return preferred.allow.some((kind) => kind === chosen?.kind)
}

/** Selects the narrowest option that the policy stands for; cancels when there is none. */
export function answerPermission(
  policy: PermissionPolicy,
  { options }: PermissionRequest,
): RequestPermissionResponse {
  for (const kind of preferred[policy]) {
    const option = options.find((candidate) => candidate.kind === kind)
    if (option !== undefined) {
      return { outcome: { outcome: 'selected', optionId: option.optionId } }
    }
  }
  return cancelledPermission
}
