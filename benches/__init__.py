"""Benchmarks of ctxfast, see README.md; also where the tests take their transcripts from."""
