/** Codex as a subagent. */
import { describeRecipe, key } from './helpers.ts'

/** Outside of the sandbox, which not every machine has. */
const escalated = { sandbox_permissions: 'require_escalated', justification: 'It is the task.' }

describeRecipe({
  section: 'Codex',
  spec: '@zed-industries/codex-acp@0.16.0',
  bin: 'node_modules/.bin',
  env: (url) => ({
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: 'gpt-5.5',
  }),
  write: (path, text) => ({
    name: 'exec_command',
    input: { cmd: `printf %s ${text} > ${path}`, ...escalated },
  }),
  shell: (cmd) => ({ name: 'exec_command', input: { cmd, ...escalated } }),
  refused: /a permission was refused/,
})
