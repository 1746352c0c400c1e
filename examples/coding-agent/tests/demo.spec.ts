import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { copyOfExample, runDemo } from './helpers.ts'

const deadlineMs = 60_000

describe('demo', () => {
  test(
    'repairs a project through children of three kinds, proves it, and says that its model is a script',
    async () => {
      const copy = await copyOfExample()

      const { code, stdout, stderr } = await runDemo(copy)

      expect(`${stdout}\n${stderr}`).not.toContain('✗')
      expect(stdout).toContain('The model is a script')
      expect(stdout).toContain('- The tests pass now, all 3 of them')
      expect(stdout).toContain('Done. I noted the fix in CHANGES.md.')
      expect(stdout).toContain('✓ the tests pass\n')
      for (const kind of ['spawn', 'fork', 'acp']) {
        expect(stderr).toMatch(new RegExp(`\\[${kind}\\]: completed`))
      }
      expect(code).toBe(0)
    },
    deadlineMs,
  )

  test(
    'fails when the repair does not',
    async () => {
      const copy = await copyOfExample()
      await edit(join(copy, 'demo-playbook.yml'), /padStart\(2,/, 'padStart(1,')

      const { code, stdout } = await runDemo(copy)

      expect(stdout).toContain('Not every helper got through')
      expect(stdout).toContain('✗ the tests pass\n')
      expect(stdout).toContain('✗ every session ended as completed')
      expect(stdout).toContain('The demo failed: ')
      expect(code).toBe(1)
    },
    deadlineMs,
  )

  test(
    'fails when its command does not start',
    async () => {
      const copy = await copyOfExample()
      await edit(join(copy, 'cordis.demo.yml'), /playbook: /, 'playbok: ')

      const { code, stdout } = await runDemo(copy)

      expect(stdout).toContain('✗ both commands ended with exit code 0')
      expect(code).toBe(1)
    },
    deadlineMs,
  )
})

async function edit(path: string, from: RegExp, to: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(from, to))
}
