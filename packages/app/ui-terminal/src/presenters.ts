/** How a single turn is presented: as text, as one JSON object, or as every event of the whole tree. */
import { once } from 'node:events'
import type { Context } from '@deepseek-ai/cordis'
import { type AppStreams, sanitize } from '@deepseek-ai/dsh-app'
import { addUsage, noUsage, type Usage } from '@deepseek-ai/dsh-llm'
import type { SessionEvent, SessionId, TurnEnd } from '@deepseek-ai/dsh-session'
import { Family, followFamily } from './family.ts'
import { showChildren, showEvent } from './progress.ts'
import { Screen } from './screen.ts'
import { failureLine, type Serving } from './serving.ts'
import { blockText } from './text.ts'

/** Follows one session from before it exists. */
export interface Presenter {
  /** Stops following; calling it twice is harmless. */
  stop(): void
  /** Prints what is printed in the end; settles when it is written. */
  finish(end: TurnEnd): Promise<void>
}

/** The presenter for what the request wants on stdout. */
export function createPresenter(serving: Serving, id: SessionId): Presenter {
  switch (serving.request.output) {
    case 'text':
      return presentText(serving, id)
    case 'json':
      return presentJson(serving, id)
    case 'events':
      return presentEvents(serving, id)
  }
}

/** Progress on stderr, and at the end the answer on stdout. */
function presentText({ ctx, config, streams, control }: Serving, id: SessionId): Presenter {
  const screen = new Screen(streams)
  control.onLog((text) => screen.line(sanitize(text)))
  const record = new TurnRecord()
  return {
    stop: all([
      onEventsOf(ctx, id, (event) => {
        record.add(event)
        showEvent(screen, event, { showReasoning: config.showReasoning, showText: true })
      }),
      showChildren(ctx, new Family(id), screen),
    ]),
    finish: async (end) => {
      screen.text(record.answer)
      screen.endText()
      if (end.reason !== 'completed') screen.line(failureLine(end), 'red')
      await written(streams, '')
    },
  }
}

/** One object, when everything is over. */
function presentJson({ ctx, streams }: Serving, id: SessionId): Presenter {
  const record = new TurnRecord()
  const family = new Family(id, { isReported: true })
  return {
    stop: all([onEventsOf(ctx, id, (event) => record.add(event)), followFamily(ctx, family)]),
    finish: ({ reason, error }) =>
      written(
        streams,
        `${JSON.stringify({
          answer: record.answer,
          stopReason: reason,
          ...(error !== undefined && { error }),
          sessionId: id,
          usage: addUsage(record.usage, family.usage()),
          children: family.report(),
        })}\n`,
      ),
  }
}

/** A line for each event of the session and of those below it, as it happens. */
function presentEvents({ ctx, streams }: Serving, id: SessionId): Presenter {
  const { stdout } = streams
  const ids = new Set([id])
  return {
    stop: all([
      ctx.on('session/event', ({ session, event }) => {
        const { parentSession: parent, delegationDepth: depth } = session.header
        if (parent !== undefined && ids.has(parent)) ids.add(session.id)
        if (!ids.has(session.id)) return
        stdout.write(
          `${JSON.stringify({ session: session.id, parent: parent ?? null, depth, event })}\n`,
        )
      }),
      // A slow reader slows the agents down instead of filling the memory.
      ctx.on('tools/execute', async (_call, next) => {
        if (stdout.writableNeedDrain) await once(stdout, 'drain')
        return next()
      }),
    ]),
    finish: () => written(streams, ''),
  }
}

/** What one turn answered and used; children are not in it. */
class TurnRecord {
  /** The last text that is not empty. */
  answer = ''
  usage: Usage = noUsage

  add(event: SessionEvent): void {
    if (event.type !== 'assistant/message') return
    this.answer = blockText(event.data.content) || this.answer
    this.usage = addUsage(this.usage, event.data.usage)
  }
}

function onEventsOf(
  ctx: Context,
  id: SessionId,
  listener: (event: SessionEvent) => void,
): () => void {
  return ctx.on('session/event', ({ session, event }) => {
    if (session.id === id) listener(event)
  })
}

/** Settles when the reader has taken everything, or has gone. */
function written({ stdout }: AppStreams, text: string): Promise<void> {
  return new Promise((resolve) => stdout.write(text, () => resolve()))
}

function all(stops: readonly (() => void)[]): () => void {
  return () => {
    for (const stop of stops) stop()
  }
}
