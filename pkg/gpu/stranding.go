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
	// streamCount is how many streams of pods a state of a node is tried with; each offers streamMilli of GPU, five
	// times an 8-GPU node. The amount, not the number of pods, ends a stream: sixty pods of a mix that is 97% CPU-only
	// hold one GPU.
	streamCount, streamMilli = 100, 40 * WholeMilli
	// maxStream bounds the pods of a stream where the shares are tiny.
	maxStream = 400
	// cpuBucketMilli is the resolution of free CPU in the cache. Twice as coarse costs a point on pods that accept few
	// models.
	cpuBucketMilli = 1000
	// cacheShards spreads the parallel readers of one scheduling cycle.
	cacheShards = 16
	// maxStranded is how many GPUs of a node count, the fullest first: more than a stream fills.
	maxStranded = 64
	// maxCached bounds a shard; a cluster holds far fewer distinct states at a time.
	maxCached = 1 << 16
)

// Stranding estimates how much GPU of a node will stay unusable if pods keep coming and none leaves: it offers the node
// fixed streams of GPU pods in the proportions of the demand, packs them best-fit into the node, and takes the mean GPU
// left over. Pods without GPUs are no part of the streams. They are a fluid that drains CPU in proportion to the GPU
// that is offered, so that a thousand small ones cannot fill the streams. Values are cached by model, free CPU and
// sorted free compute. A Stranding is safe for concurrent use; new demand takes a new one.
type Stranding struct {
	portions []Portion
	// fluid is the CPU, in milli-cores, that pods without GPUs take for each milli-GPU that is offered.
	fluid float64

	// models are replaced as a whole when one is added: they are few, and read by every goroutine of a cycle.
	mu     sync.Mutex
	models atomic.Pointer[map[string]*streams]

	seed   maphash.Seed
	shards [cacheShards]strandingShard

	hits, misses atomic.Uint64
}

type strandingShard struct {
	mu     sync.RWMutex
	values map[string]float64
	_      [64]byte // keeps two shards' locks off one cache line
}

// streams are those of the pods that accept one model.
type streams struct {
	id   uint16
	pods [streamCount][]offer
	// minCPU is the least CPU that a pod of the streams needs; with less nothing can be placed.
	minCPU int64
	fluid  float64
}

type offer struct {
	cpu   int64
	count int16
	milli int16
}

func newStranding(d *Distribution) *Stranding {
	s := &Stranding{portions: d.Portions, fluid: d.CPUBeside, seed: maphash.MakeSeed()}
	s.models.Store(&map[string]*streams{})
	for i := range s.shards {
		s.shards[i].values = map[string]float64{}
	}
	return s
}

// CacheCounts returns how many values were found in the cache and how many had to be computed.
func (s *Stranding) CacheCounts() (hits, misses uint64) { return s.hits.Load(), s.misses.Load() }

// stream returns the streams for one model.
func (s *Stranding) stream(model string) *streams {
	if m := (*s.models.Load())[model]; m != nil {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	models := maps.Clone(*s.models.Load())
	if m := models[model]; m != nil {
		return m
	}
	m := newStreams(s.portions, model)
	m.id, m.fluid = uint16(len(models)), s.fluid
	models[model] = m
	s.models.Store(&models)
	return m
}

// newStreams draws the streams. Each is stratified, one pod from each equal part of the demand, and then shuffled: with
// the mix held fixed the streams differ by order alone, which takes most of the noise out of the mean. The draws are
// the same for every node and mix, so that the values of two states differ by the states.
func newStreams(portions []Portion, model string) *streams {
	m := &streams{minCPU: math.MaxInt64}
	var accepted []Portion
	var cumulative []float64
	sum, demand := 0.0, 0.0
	for _, p := range portions {
		if p.Milli == 0 || !p.acceptsModel(model) {
			continue
		}
		sum += p.Fraction
		demand += p.Fraction * float64(p.Count*p.Milli)
		accepted, cumulative = append(accepted, p), append(cumulative, sum)
		m.minCPU = min(m.minCPU, p.CPUMilli)
	}
	if len(accepted) == 0 {
		return m
	}
	n := min(maxStream, int(math.Ceil(streamMilli*sum/demand)))
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the sequence is meant to be the same in every process
	for s := range m.pods {
		m.pods[s] = make([]offer, n)
		for i := range n {
			at := sort.SearchFloat64s(cumulative, (float64(i)+r.Float64())/float64(n)*sum)
			p := accepted[min(at, len(accepted)-1)]
			m.pods[s][i] = offer{p.CPUMilli, int16(min(p.Count, 1<<14)), int16(p.Milli)}
		}
		r.Shuffle(n, func(i, j int) { m.pods[s][i], m.pods[s][j] = m.pods[s][j], m.pods[s][i] })
	}
	return m
}

// Value is the GPU, in milli-GPU, that is expected to stay unusable on a node of that model with the given free CPU
// and free compute per device. free is sorted in place.
func (s *Stranding) Value(model string, freeCPUMilli int64, free []int) float64 {
	m := s.stream(model)
	slices.Sort(free)
	for len(free) > 0 && free[0] == 0 {
		free = free[1:]
	}
	if len(free) == 0 {
		return 0
	}
	free = free[:min(len(free), maxStranded)]
	bucket := max(0, freeCPUMilli) / cpuBucketMilli
	var buf [72]byte
	key := binary.LittleEndian.AppendUint16(buf[:0], m.id)
	key = binary.LittleEndian.AppendUint16(key, uint16(min(bucket, 1<<16-1)))
	for _, f := range free {
		key = binary.LittleEndian.AppendUint16(key, uint16(f))
	}
	shard := &s.shards[maphash.Bytes(s.seed, key)%cacheShards]
	shard.mu.RLock()
	v, ok := shard.values[string(key)]
	shard.mu.RUnlock()
	if ok {
		s.hits.Add(1)
		return v
	}
	s.misses.Add(1)
	v = m.stranded(bucket*cpuBucketMilli+cpuBucketMilli/2, free)
	shard.mu.Lock()
	if len(shard.values) >= maxCached {
		clear(shard.values)
	}
	shard.values[string(key)] = v
	shard.mu.Unlock()
	return v
}

// Expected is Value of the node as it is.
func (s *Stranding) Expected(inv *Inventory) float64 {
	var buf [32]int
	return s.Value(inv.Model, inv.FreeCPUMilli, inv.freeVector(buf[:0]))
}

// stranded plays the streams. free is ascending and without zeros.
func (m *streams) stranded(cpu int64, free []int) float64 {
	total := sum(free)
	if cpu < m.minCPU {
		return float64(total)
	}
	var buf [16]int
	left := append(buf[:0], free...)
	sum := 0
	for s := range m.pods {
		copy(left, free)
		sum += m.play(m.pods[s], float64(cpu), left, total)
	}
	return float64(sum) / streamCount
}

// play places the stream's pods one after the other and returns the compute left over. With every milli-GPU that is
// offered, placed or not, the fluid takes its CPU, up to what comes with as much GPU as the node has free.
func (m *streams) play(pods []offer, cpu float64, left []int, total int) int {
	drained, bound := 0.0, m.fluid*float64(total)
	for _, p := range pods {
		if float64(p.cpu) <= cpu {
			if taken := place(left, int(p.count), int(p.milli)); taken > 0 {
				total -= taken
				cpu -= float64(p.cpu)
			}
		}
		drain := min(m.fluid*float64(int(p.count)*int(p.milli)), bound-drained)
		drained += drain
		if cpu -= drain; total == 0 || cpu < float64(m.minCPU) {
			return total
		}
	}
	return total
}

// place takes milli of each of count GPUs, of the fullest that hold it, and returns the compute taken: all or nothing.
// The order of left does not matter.
func place(left []int, count, milli int) (placed int) {
	if count == 1 {
		i := tightest(left, milli)
		if i < 0 {
			return 0
		}
		left[i] -= milli
		return milli
	}
	if takeFullest(left, count, milli) {
		placed = count * milli
	} else {
		milli = 0
	}
	for i := range left {
		if left[i] < 0 {
			left[i] += taken - milli
		}
	}
	return placed
}
