/** OpenCode as a subagent. */
import { describeRecipe, key } from './helpers.ts'

describeRecipe({
  section: 'OpenCode',
  spec: `opencode-${process.platform}-${process.arch}@1.18.33`,
  bin: `node_modules/opencode-${process.platform}-${process.arch}/bin`,
  env: (url) => ({
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: 'qwen3-coder',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  }),
  read: (filePath) => ({ name: 'read', input: { filePath } }),
  write: (filePath, content) => ({ name: 'write', input: { filePath, content } }),
  shell: (command) => ({ name: 'bash', input: { command, description: 'Waits.' } }),
  refused: /ended without a text/,
})
