package gpu

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

const (
	// streamCount and streamLength are how many synthetic streams of how many pods a state of a node is tried with.
	streamCount, streamLength = 50, 60
	// cpuBucketMilli is the resolution of free CPU in the cache.
	cpuBucketMilli = 2000
	// cacheShards spreads the parallel readers of one scheduling cycle.
	cacheShards = 16
	// maxCached bounds a shard; a cluster holds far fewer distinct states at a time.
	maxCached = 1 << 16
)

// draws are the fixed uniform numbers behind the streams: the same for every node, state and mix, so that the values
// of two states differ by the states alone (common random numbers).
var draws = func() [streamCount][streamLength]float64 {
	var d [streamCount][streamLength]float64
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the sequence is meant to be the same in every process
	for s := range d {
		for i := range d[s] {
			d[s][i] = r.Float64()
		}
	}
	return d
}()

// Residual estimates how much GPU of a node will stay unusable: it offers the node fixed synthetic streams of pods
// drawn from the workload's mix, places each pod best-fit inside the node, and takes the mean GPU left over. Values
// are cached by (model, free CPU bucket, sorted free vector). It is safe for concurrent use; a new mix takes a new
// Residual.
type Residual struct {
	dist    *Distribution
	streams [streamCount][streamLength]int32

	// models are replaced as a whole when one is added: they are few, and read by every goroutine of a cycle.
	mu     sync.Mutex
	models atomic.Pointer[map[string]*modelStreams]

	seed   maphash.Seed
	shards [cacheShards]residualShard

	hits, misses atomic.Uint64
}

type residualShard struct {
	mu     sync.RWMutex
	values map[string]float64
	_      [64]byte // keeps two shards' locks off one cache line
}

// modelStreams are the streams without the pods that do not accept the model.
type modelStreams struct {
	id   uint16
	pods [streamCount][]offer
	// minCPU is the least CPU that a GPU pod of the streams needs; with less nothing can be placed.
	minCPU int64
}

type offer struct {
	cpu   int64
	count int16
	milli int16
}

// NewResidual draws the streams from a distribution.
func NewResidual(d *Distribution) *Residual {
	r := &Residual{dist: d, seed: maphash.MakeSeed()}
	r.models.Store(&map[string]*modelStreams{})
	for i := range r.shards {
		r.shards[i].values = map[string]float64{}
	}
	if len(d.portions) == 0 {
		return r
	}
	cumulative := make([]float64, len(d.portions))
	sum := 0.0
	for i, p := range d.portions {
		sum += p.Fraction
		cumulative[i] = sum
	}
	for s := range draws {
		for i, u := range draws[s] {
			r.streams[s][i] = int32(min(sort.SearchFloat64s(cumulative, u*sum), len(cumulative)-1))
		}
	}
	return r
}

// Distribution is the mix behind the streams.
func (r *Residual) Distribution() *Distribution { return r.dist }

// Known reports whether the mix is known well enough for Value to mean something.
func (r *Residual) Known() bool { return r.dist.Known }

// CacheCounts returns how many values were found in the cache and how many had to be computed.
func (r *Residual) CacheCounts() (hits, misses uint64) { return r.hits.Load(), r.misses.Load() }

// stream returns the streams for one model.
func (r *Residual) stream(model string) *modelStreams {
	if m := (*r.models.Load())[model]; m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	models := maps.Clone(*r.models.Load())
	if m := models[model]; m != nil {
		return m
	}
	m := &modelStreams{id: uint16(len(models)), minCPU: 1 << 62}
	for s := range r.streams {
		for _, i := range r.streams[s] {
			if len(r.dist.portions) == 0 {
				break
			}
			p := r.dist.portions[i]
			if !p.accepts(model) {
				continue
			}
			m.pods[s] = append(m.pods[s], offer{p.CPUMilli, int16(min(p.Count, 1<<14)), int16(p.Milli)})
			if p.Count > 0 {
				m.minCPU = min(m.minCPU, p.CPUMilli)
			}
		}
	}
	models[model] = m
	r.models.Store(&models)
	return m
}

// Value is the GPU, in milli-GPU, that is expected to stay unusable on a node of that model with the given free CPU
// and free compute per device. free is sorted in place.
func (r *Residual) Value(model string, freeCPUMilli int64, free []int) float64 {
	m := r.stream(model)
	slices.Sort(free)
	for len(free) > 0 && free[0] == 0 {
		free = free[1:]
	}
	if len(free) == 0 {
		return 0
	}
	bucket := max(0, freeCPUMilli) / cpuBucketMilli
	var buf [72]byte
	key := binary.LittleEndian.AppendUint16(buf[:0], m.id)
	key = binary.LittleEndian.AppendUint16(key, uint16(min(bucket, 1<<16-1)))
	for _, f := range free {
		key = binary.LittleEndian.AppendUint16(key, uint16(f))
	}
	shard := &r.shards[maphash.Bytes(r.seed, key)%cacheShards]
	shard.mu.RLock()
	v, ok := shard.values[string(key)]
	shard.mu.RUnlock()
	if ok {
		r.hits.Add(1)
		return v
	}
	r.misses.Add(1)
	v = m.residual(bucket*cpuBucketMilli+cpuBucketMilli/2, free)
	shard.mu.Lock()
	if len(shard.values) >= maxCached {
		clear(shard.values)
	}
	shard.values[string(key)] = v
	shard.mu.Unlock()
	return v
}

// residual plays the streams. free is ascending and without zeros.
func (m *modelStreams) residual(cpu int64, free []int) float64 {
	total := 0
	for _, f := range free {
		total += f
	}
	if cpu < m.minCPU {
		return float64(total)
	}
	var buf [16]int
	left := append(buf[:0], free...)
	sum := 0
	for s := range m.pods {
		copy(left, free)
		sum += m.play(m.pods[s], cpu, left, total)
	}
	return float64(sum) / streamCount
}

// play places the stream's pods one after the other and returns the compute left over.
func (m *modelStreams) play(pods []offer, cpu int64, left []int, total int) int {
	for _, p := range pods {
		if p.cpu > cpu {
			continue
		}
		switch {
		case p.count == 0:
		case p.count == 1:
			i := tightest(left, int(p.milli))
			if i < 0 {
				continue
			}
			left[i] -= int(p.milli)
			total -= int(p.milli)
		case p.milli >= WholeMilli:
			n := int(p.count)
			for i := len(left) - 1; i >= 0 && n > 0; i-- {
				if left[i] >= WholeMilli {
					n--
				}
			}
			if n > 0 {
				continue
			}
			n = int(p.count)
			for i := 0; n > 0; i++ {
				if left[i] >= WholeMilli {
					left[i] = 0
					n--
				}
			}
			total -= int(p.count) * WholeMilli
		default:
			if !playShare(left, int(p.count), int(p.milli)) {
				continue
			}
			total -= int(p.count) * int(p.milli)
		}
		if cpu -= p.cpu; total == 0 || cpu < m.minCPU {
			return total
		}
	}
	return total
}

// tightest is the index of the fullest GPU that holds the share, -1 for none.
func tightest(left []int, milli int) int {
	best, least := -1, math.MaxInt
	for i, f := range left {
		if f >= milli && f < least {
			best, least = i, f
		}
	}
	return best
}

// playShare takes the share of count GPUs, of the fullest that hold it, or nothing.
func playShare(left []int, count, milli int) bool {
	var taken [16]int
	if count > len(taken) {
		return false
	}
	for n := range count {
		best := -1
		for i, f := range left {
			if f >= milli && (best < 0 || f < left[best]) && !slices.Contains(taken[:n], i) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		taken[n] = best
	}
	for _, i := range taken[:count] {
		left[i] -= milli
	}
	return true
}
