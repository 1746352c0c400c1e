/** Writes the pages that are generated from the sources. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readFacts, renderCatalog } from './catalog/catalog.ts'
import { openWorkspace } from './compiler.ts'
import { renderModuleGraph } from './graph/module-graph.ts'
import { readWorkspace, root } from './workspace.ts'

using open = openWorkspace()
writeFileSync(join(root, 'docs/catalog.md'), await renderCatalog(await readFacts(open.project)))
writeFileSync(join(root, 'docs/module-graph.svg'), renderModuleGraph(readWorkspace()))
