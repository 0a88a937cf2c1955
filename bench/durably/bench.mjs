// Measures @coji/durably on a libsql file or on PostgreSQL: runs of one step,
// and one run of many steps after each other. Called by package bench, which
// reads the last line: node bench.mjs step|seq N FOLDER|postgres://…
import { createDurably, defineJob } from '@coji/durably'
import { createClient } from '@libsql/client'
import { LibsqlDialect } from '@libsql/kysely-libsql'
import { PostgresDialect } from 'kysely'
import { join } from 'node:path'
import pg from 'pg'
import { z } from 'zod'

const [what, count, place] = process.argv.slice(2)
const n = Number(count)

let ended = 0
let allEnded
const done = new Promise((resolve) => { allEnded = resolve })

const oneStep = defineJob({
  name: 'one-step',
  input: z.object({ i: z.number() }),
  output: z.object({ v: z.number() }),
  run: async (step, { i }) => ({ v: await step.run('double', async () => 2 * i) }),
})

const sequence = defineJob({
  name: 'sequence',
  input: z.object({ n: z.number() }),
  output: z.object({ sum: z.number(), took: z.number() }),
  run: async (step, { n }) => {
    const begin = performance.now()
    let sum = 0
    for (let i = 0; i < n; i++) sum += await step.run(`s${i}`, async () => i)
    return { sum, took: performance.now() - begin }
  },
})

const dialect = place.startsWith('postgres://')
  ? new PostgresDialect({ pool: new pg.Pool({ connectionString: place }) })
  : new LibsqlDialect({ client: createClient({ url: `file:${join(place, 'durably.db')}` }) })
const durably = createDurably({ dialect, pollingIntervalMs: 10, maxConcurrentRuns: 8, jobs: { oneStep, sequence } })

let took
if (what === 'step') {
  await durably.migrate()
  for (let i = 0; i < n; i += 500) {
    await durably.jobs.oneStep.batchTrigger(Array.from({ length: Math.min(500, n - i) }, (_, k) => ({ input: { i: i + k } })))
  }
  durably.on('run:complete', () => { if (++ended === n) allEnded() })
  const begin = performance.now()
  durably.start()
  await done
  took = performance.now() - begin
} else {
  await durably.init()
  const result = await durably.jobs.sequence.triggerAndWait({ n }, { timeout: 600_000 })
  took = result.output.took
}
await durably.stop()
console.log((n / took) * 1000)
process.exit(0)
