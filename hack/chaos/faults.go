package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
)

// disaster is a kind of fault that is done to the cluster.
type disaster struct {
	name string
	// times it is done in a full run.
	times int
	// do does it and returns when it is over: only what has to recover is left.
	do func(context.Context, *cluster, *rand.Rand) error
	// lasts says that it goes on for a while, so that recovery begins at its end.
	lasts bool
}

var disasters = []disaster{
	{name: "scheduler killed", times: 50, do: killScheduler},
	{name: "leader killed, standby live", times: 3, do: killLeader},
	{name: "leader stopped in order, standby live", times: 3, do: stopLeader},
	{name: "leader frozen for longer than its lease, standby live", times: 5, do: freezeLeader},
	{name: "API server killed", times: 3, do: func(ctx context.Context, c *cluster, _ *rand.Rand) error {
		return errors.Join(c.kill(ctx, "kube-apiserver"), c.serves(ctx))
	}},
	{name: "etcd killed", times: 3, do: func(ctx context.Context, c *cluster, _ *rand.Rand) error {
		return errors.Join(c.kill(ctx, "etcd"), c.serves(ctx))
	}},
	{name: "connections cut", times: 5, do: cutConnections},
	{name: "API slow and lossy", times: 3, do: slowAPI, lasts: true},
	{name: "etcd full", times: 2, do: fillEtcd, lasts: true},
}

// killScheduler kills the only scheduler and starts another.
func killScheduler(ctx context.Context, c *cluster, _ *rand.Rand) error {
	r := c.leader(ctx)
	if r == nil {
		return errors.New("no scheduler leads")
	}
	return errors.Join(r.signal(syscall.SIGKILL), c.startReplica(r))
}

// withStandby starts the other replica, waits until it has its caches, does something to the leader, and in the end
// leaves one scheduler, which leads.
func withStandby(ctx context.Context, c *cluster, do func(leader *replica) error) error {
	leader := c.leader(ctx)
	if leader == nil {
		return errors.New("no scheduler leads")
	}
	standby := c.replicas[1-leader.number]
	if err := c.startReplica(standby); err != nil {
		return err
	}
	err := await(ctx, "the standby", func(ctx context.Context) (bool, error) {
		_, err := c.page(ctx, standby, "/readyz")
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if err := do(leader); err != nil {
		return err
	}
	return await(ctx, "the standby to lead", func(ctx context.Context) (bool, error) {
		return c.leads(ctx, standby) && !leader.alive(), nil
	})
}

func killLeader(ctx context.Context, c *cluster, _ *rand.Rand) error {
	return withStandby(ctx, c, func(leader *replica) error { return leader.signal(syscall.SIGKILL) })
}

func stopLeader(ctx context.Context, c *cluster, _ *rand.Rand) error {
	return withStandby(ctx, c, func(leader *replica) error { return leader.signal(syscall.SIGTERM) })
}

// freezeLeader stops the leader's process until another one leads: when it wakes, it has not noticed that time has
// passed.
func freezeLeader(ctx context.Context, c *cluster, random *rand.Rand) error {
	return withStandby(ctx, c, func(leader *replica) error {
		if err := leader.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		standby := c.replicas[1-leader.number]
		err := await(ctx, "the standby to lead",
			func(ctx context.Context) (bool, error) { return c.leads(ctx, standby), nil })
		pause(ctx, time.Duration(random.IntN(1000))*time.Millisecond)
		if err := errors.Join(err, leader.signal(syscall.SIGCONT)); err != nil {
			return err
		}
		return await(ctx, "the old leader to notice", func(context.Context) (bool, error) { return !leader.alive(), nil })
	})
}

// cutConnections ends the schedulers' connections a few times in a row, so that some are cut while they are made again.
func cutConnections(ctx context.Context, c *cluster, random *rand.Rand) error {
	for range 1 + random.IntN(4) {
		c.proxy.cut()
		pause(ctx, time.Duration(random.IntN(400))*time.Millisecond)
	}
	return ctx.Err()
}

// slowAPI delays every piece of data by up to 150 ms and ends one connection in 200 pieces, for 6 to 10 s. A scheduler
// that cannot renew its lease ends, and is started again as a kubelet would.
func slowAPI(ctx context.Context, c *cluster, random *rand.Rand) error {
	c.proxy.slow(150*time.Millisecond, 5)
	defer c.proxy.slow(0, 0)
	pause(ctx, 6*time.Second+time.Duration(random.IntN(4000))*time.Millisecond)
	return ctx.Err()
}

// fillEtcd writes until etcd refuses, leaves it so for a while, and then makes space as its operator would.
func fillEtcd(ctx context.Context, c *cluster, random *rand.Rand) error {
	const space = metav1.NamespaceDefault
	piece := strings.Repeat("x", 1000<<10)
	for i := 0; ; i++ {
		_, err := c.client.CoreV1().ConfigMaps(space).Create(ctx, &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("filler-%d", i), Labels: map[string]string{"chaos": "filler"}},
			Data:       map[string]string{"x": piece},
		}, metav1.CreateOptions{})
		if err != nil && strings.Contains(err.Error(), "database space exceeded") {
			break
		}
		if err != nil {
			return fmt.Errorf("filling etcd: %w", err)
		}
	}
	pause(ctx, time.Duration(1000+random.IntN(5000))*time.Millisecond)
	err := c.client.CoreV1().ConfigMaps(space).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "chaos=filler"})
	if err != nil {
		return fmt.Errorf("emptying etcd: %w", err)
	}
	return c.disarm(ctx)
}

// disarm gives the space of deleted objects back and lets etcd write again.
func (c *cluster) disarm(ctx context.Context) error {
	layout := sandbox.Layout(c.box.Dir())
	state, err := layout.ReadState()
	if err != nil {
		return err
	}
	keys := layout.Keys()
	tls, err := transport.TLSInfo{CertFile: keys.Cert(sandbox.KeyEtcdClient), KeyFile: keys.Key(sandbox.KeyEtcdClient),
		TrustedCAFile: keys.Cert(sandbox.KeyCA)}.ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the keys of etcd: %w", err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{state.Etcd}, TLS: tls, DialTimeout: 10 * time.Second,
		Context: ctx})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = etcd.Close() }()
	now, err := etcd.Get(ctx, "revision")
	if err != nil {
		return fmt.Errorf("asking etcd for its revision: %w", err)
	}
	if _, err := etcd.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	if _, err := etcd.Defragment(ctx, state.Etcd); err != nil {
		return fmt.Errorf("defragmenting etcd: %w", err)
	}
	if _, err := etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("ending etcd's alarm: %w", err)
	}
	return nil
}

// pause lets time go by in which the cluster lives.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
