/** Claude Code as a subagent. */
import { describeRecipe, key } from './helpers.ts'

describeRecipe({
  section: 'Claude Code',
  spec: '@agentclientprotocol/claude-agent-acp@0.49.0',
  bin: 'node_modules/.bin',
  env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key }),
  read: (file_path) => ({ name: 'Read', input: { file_path } }),
  write: (file_path, content) => ({ name: 'Write', input: { file_path, content } }),
  shell: (command) => ({ name: 'Bash', input: { command, description: 'Waits.' } }),
  refused: /User refused permission/,
})
