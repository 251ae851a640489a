package main

import (
	"math/rand/v2"
	"time"

	"berth.dev/berth/pkg/runtimes"
)

// knowledge is what a policy knows of run times.
type knowledge struct {
	// exact is set if run times are known; factor is by how much they are exaggerated.
	exact  bool
	factor float64
	// claim returns what the job declares.
	claim func(j *job) runtimes.Claim
}

func (k *knowledge) left(b *runtimes.Book, j *job, age float64) runtimes.Forecast {
	if k.exact {
		return runtimes.Certain(seconds(max(j.run*k.factor-age, 0)))
	}
	claim := k.claim(j)
	s := b.Of(classOf(j), &claim)
	return s.Left(seconds(age))
}

func (k *knowledge) ended(b *runtimes.Book, j *job) {
	if !k.exact {
		claim := k.claim(j)
		b.Ended(classOf(j), &claim, seconds(j.run))
	}
}

// classOf is the class of each pod of the job, as the scheduler sees it. A run of a gang counts once.
func classOf(j *job) *runtimes.Class {
	return &runtimes.Class{Namespace: j.user, GPUs: min(j.gpus, gpusPerNode)}
}

func perfect(factor float64) knowledge { return knowledge{exact: true, factor: factor} }

func learned() knowledge {
	return knowledge{claim: func(*job) runtimes.Claim { return runtimes.Claim{} }}
}

// declared is the truth times a factor that is drawn for each job between two others, as expected run time or as limit.
func declared(low, high float64, limit bool) knowledge {
	return knowledge{claim: func(j *job) runtimes.Claim {
		r := rand.New(rand.NewPCG(uint64(j.id), 3))
		d := max(seconds(j.run*(low+r.Float64()*(high-low))), time.Second)
		if limit {
			return runtimes.Claim{Limit: d}
		}
		return runtimes.Claim{Expected: d}
	}}
}
