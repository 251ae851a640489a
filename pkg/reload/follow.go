package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"
)

const (
	// look is how often the file is read. A mounted ConfigMap changes by links and a file on the host by being
	// replaced, and both are seen by reading, where a watch of the file system has to follow each link.
	look = time.Second
	// leaderDelay is how much later a leader replaces itself than a standby, which then is ready to lead.
	leaderDelay = 5 * time.Second
)

// Scheduler is what is asked of the scheduler that runs with the configuration.
type Scheduler interface {
	// Leads reports whether it leads other replicas.
	Leads(ctx context.Context) bool
	// Quiesce stops taking pods, waits for the bindings under way and gives the lease back.
	Quiesce(ctx context.Context)
	// Warn tells the user that a change was not taken.
	Warn(ctx context.Context, reason, note string)
}

// started notes that this process works with its configuration. It reports false, and notes nothing, if the start has
// failed.
func (c *Config) started(ctx context.Context, at time.Time) bool {
	logger := klog.FromContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome == startFailed {
		return false
	}
	c.outcome = startWorked
	registerMetrics()
	for _, result := range []string{resultSuccess, resultRejected, resultFailed} {
		reloads.WithLabelValues(result).Add(float64(c.counts[result]))
	}
	if c.resumed && c.rejected == "" {
		c.count(resultSuccess)
		took := at.Sub(c.noticed)
		changeDuration.Set(took.Seconds())
		logger.Info("The changed configuration is in force", "file", c.file, "hash", hashOf(c.inForce), "duration", took)
	}
	if err := c.keepCopy(); err != nil {
		logger.Error(err, "The next start of the container will have no last configuration to go back to")
	}
	return true
}

// Follow watches the file until ctx ends, and replaces this process when there is a configuration in it that works.
// ready is closed when the scheduler has started: nothing that it does after that can end it with an error of its
// configuration.
func (c *Config) Follow(ctx context.Context, scheduler Scheduler, ready <-chan struct{}) {
	logger := klog.FromContext(ctx)
	c.show(hashOf(c.inForce))
	if c.rejected != "" {
		// The process before could not say so: it did not start.
		scheduler.Warn(ctx, "ConfigurationRejected", "the scheduler did not start with the configuration in "+c.file+
			"; the last one that worked is in force")
		c.show(c.rejected)
	}
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	if !c.started(ctx, time.Now()) {
		return
	}
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var last lastLook
	gone := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		content, err := os.ReadFile(c.file)
		if err != nil {
			if !gone {
				gone = true
				c.reject(ctx, scheduler, "", fmt.Errorf("reading the configuration: %w", err))
			}
			continue
		}
		gone = false
		settled := last.same(content)
		switch {
		case bytes.Equal(content, c.inForce):
			if c.rejected != "" {
				logger.Info("The file has the configuration in force again", "file", c.file)
			}
			c.rejected, c.postponed = "", postponed{}
			c.show(hashOf(content))
		case settled && hashOf(content) != c.rejected && !c.postponed.holds(hashOf(content), time.Now()):
			c.take(ctx, scheduler, content)
			last = nil
		}
	}
}

// lastLook is what the file had when it was last read, nil if it has not been read since it was checked.
type lastLook []byte

// same reports whether the file has the same content as at the last look, and notes it. Only what is the same twice is
// a whole file: one that is being written has no content at first.
func (l *lastLook) same(content []byte) bool {
	same := *l != nil && bytes.Equal(content, *l)
	*l = content
	return same
}

// take checks a new configuration and replaces this process by one that has it.
func (c *Config) take(ctx context.Context, scheduler Scheduler, content []byte) {
	logger := klog.FromContext(ctx)
	noticed := time.Now()
	logger.Info("The configuration has changed, checking it", "file", c.file, "hash", hashOf(content))
	if err := check(ctx, content); err != nil {
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errNotChecked):
			c.postpone(ctx, scheduler, hashOf(content), err)
		default:
			c.reject(ctx, scheduler, hashOf(content), err)
		}
		return
	}
	if scheduler.Leads(ctx) {
		delay := time.NewTimer(leaderDelay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-ctx.Done():
			return
		}
		// It may have changed once more.
		if latest, err := os.ReadFile(c.file); err != nil || !bytes.Equal(latest, content) {
			logger.Info("The configuration has changed again", "file", c.file)
			return
		}
	}
	logger.Info("Restarting with the changed configuration", "file", c.file, "hash", hashOf(content))
	scheduler.Quiesce(ctx)
	if ctx.Err() != nil {
		return
	}
	klog.Flush()
	err := replace(content, c.inForce, handedOver{Noticed: noticed, Counts: c.counts})
	// This process does not schedule any more and cannot be made to: the container starts it again.
	logger.Error(err, "Restarting failed")
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// reject keeps the configuration in force and says why.
func (c *Config) reject(ctx context.Context, scheduler Scheduler, hash string, err error) {
	c.rejected = hash
	c.count(resultRejected)
	c.show(hash)
	klog.FromContext(ctx).Error(err, "The configuration cannot be used, keeping the one in force", "file", c.file, "hash",
		hash, "inForce", hashOf(c.inForce))
	scheduler.Warn(ctx, "ConfigurationRejected", fmt.Sprintf("%s: %v; the configuration in force stays", c.file, err))
}

// postpone keeps the configuration in force for now and says why.
func (c *Config) postpone(ctx context.Context, scheduler Scheduler, hash string, err error) {
	c.rejected = ""
	pause := c.postponed.postpone(hash, time.Now())
	c.show(hash)
	klog.FromContext(ctx).Error(err, "The configuration is not checked, keeping the one in force and trying again", "file",
		c.file, "hash", hash,
		"inForce", hashOf(c.inForce), "after", pause)
	scheduler.Warn(ctx, "ConfigurationNotChecked",
		fmt.Sprintf("%s: %v; the configuration in force stays, and the check is made again in %s", c.file, err, pause))
}

// Failed is called when the scheduler has ended with an error. If it had not started, and its configuration is a new
// one or the container has a copy of one that worked, Failed goes back to the one that worked and does not return. How
// long the start took does not count: to read all objects of a large cluster takes minutes.
func (c *Config) Failed(ctx context.Context, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome == startWorked {
		return cause
	}
	c.outcome = startFailed
	if ctx.Err() != nil || c.lastGood == nil || bytes.Equal(c.lastGood, c.inForce) {
		return cause
	}
	logger := klog.FromContext(ctx)
	logger.Error(cause, "The scheduler did not start with this configuration, going back to the last one that worked",
		"file", c.file, "hash", hashOf(c.inForce), "last", hashOf(c.lastGood))
	// Follow goes on beside this and reads the fields of c.
	counts := map[string]int{resultFailed: 1}
	for result, n := range c.counts {
		counts[result] += n
	}
	klog.Flush()
	if err := replace(c.lastGood, nil,
		handedOver{Rejected: hashOf(c.inForce), Noticed: c.noticed, Counts: counts}); err != nil {
		logger.Error(err, "Going back failed")
	}
	return cause
}
