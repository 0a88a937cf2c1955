// Measures @coji/durably on SQLocal, as bench.js of Weaver does.
import { createDurably, defineJob } from '@coji/durably'
import { SQLocalKysely } from 'sqlocal/kysely'
import { z } from 'zod'

const { what, n: count } = Object.fromEntries(new URLSearchParams(location.search))
const n = Number(count)

const oneStep = defineJob({
  name: 'one-step',
  input: z.object({ i: z.number() }),
  output: z.object({ v: z.number() }),
  run: async (step, { i }) => ({ v: await step.run('double', async () => 2 * i) }),
})

const sequence = defineJob({
  name: 'sequence',
  input: z.object({ n: z.number() }),
  output: z.object({ sum: z.number() }),
  run: async (step, { n }) => {
    let sum = 0
    for (let i = 0; i < n; i++) sum += await step.run(`s${i}`, async () => i)
    return { sum }
  },
})

async function measure() {
  const processor = new Worker('worker.js', { type: 'module' })
  const { dialect } = new SQLocalKysely({ databasePath: 'bench.sqlite3', processor })
  const durably = createDurably({ dialect, pollingIntervalMs: 10, maxConcurrentRuns: 8, jobs: { oneStep, sequence } })
  await durably.init()
  await durably.jobs.oneStep.triggerAndWait({ i: 1 }, { timeout: 600_000 })
  if (what === 'cold') return performance.now()
  const begin = performance.now()
  if (what === 'seq') {
    await durably.jobs.sequence.triggerAndWait({ n }, { timeout: 600_000 })
  } else {
    let ended = 0
    const all = new Promise((resolve) => durably.on('run:complete', () => { if (++ended === n) resolve() }))
    for (let i = 0; i < n; i += 500) {
      await durably.jobs.oneStep.batchTrigger(Array.from({ length: Math.min(500, n - i) }, (_, k) => ({ input: { i: i + k } })))
    }
    await all
  }
  return (n / (performance.now() - begin)) * 1000
}

measure().then((value) => ({ value }), (err) => ({ error: String(err.stack ?? err) })).then((result) => fetch('/result', { method: 'POST', body: JSON.stringify(result) }))
