/** Qwen Code as a subagent. */
import { describeRecipe, key } from './helpers.ts'

describeRecipe({
  section: 'Qwen Code',
  spec: '@qwen-code/qwen-code@0.15.10',
  bin: 'node_modules/.bin',
  env: (url) => ({
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: 'qwen3-coder',
  }),
  read: (file_path) => ({ name: 'read_file', input: { file_path } }),
  write: (file_path, content) => ({ name: 'write_file', input: { file_path, content } }),
  shell: (command) => ({ name: 'run_shell_command', input: { command, is_background: false } }),
  refused: /canceled by the user/,
})
