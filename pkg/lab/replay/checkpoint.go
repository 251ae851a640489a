package replay

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/wellknown"
)

// work is the progress of a pod, or of a gang as a whole.
type work struct {
	// began is when it last began to run, zero while it does not run.
	began time.Time
	// saved is the run time that was saved before that.
	saved time.Duration
}

// begin starts or resumes the work now, and sets the timers of its end and its first checkpoint.
func (c *cluster) begin(w *work, of timer, now time.Time) {
	if c.options.Mode != replayed.VirtualTime || of.job.Duration == 0 {
		return
	}
	w.began = now
	of.at = now.Add(of.job.Duration - w.saved)
	c.setTimer(of)
	c.setCheckpoint(w, of, now)
}

// setCheckpoint sets the timer of the next checkpoint, unless the work ends before it.
func (c *cluster) setCheckpoint(w *work, of timer, last time.Time) {
	every := of.job.CheckpointEvery
	if of.at = last.Add(every); every == 0 || !of.at.Before(w.began.Add(of.job.Duration-w.saved)) {
		return
	}
	of.checkpoint = true
	c.setTimer(of)
}

// work is the work that ends, or is saved.
func (e *timer) work() *work {
	if e.pod != nil {
		return &e.pod.work
	}
	return &e.job.work
}

// save reports a checkpoint in an annotation of the pod, or of the first pod of the gang, as a job does.
func (c *cluster) save(e timer) {
	key := podKey(&e.job.Job, 0)
	if e.pod != nil {
		key = e.pod.key
	}
	if c.world.API.Get(podResource, key) == nil {
		return // it is being evicted
	}
	err := c.world.API.Change(podResource, key, func(obj runtime.Object) {
		metav1.SetMetaDataAnnotation(&obj.(*v1.Pod).ObjectMeta, wellknown.LastCheckpointKey, e.at.UTC().Format(time.RFC3339))
	})
	if err != nil {
		c.fail(err)
	}
	apart()
	c.setCheckpoint(e.work(), e, e.at)
}

// interrupt stops work that runs on some GPUs. The run time since the last checkpoint is lost.
func (c *cluster) interrupt(w *work, j *jobState, milli int64, now time.Time) {
	if w.began.IsZero() {
		return
	}
	ran := now.Sub(w.began)
	kept := time.Duration(0)
	if j.CheckpointEvery > 0 {
		kept = ran.Truncate(j.CheckpointEvery)
	}
	c.record.lostGPUHours += (ran - kept).Hours() * float64(milli) / 1000
	*w = work{saved: w.saved + kept}
}
