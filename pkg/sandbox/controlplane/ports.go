package controlplane

import (
	"errors"

	"berth.dev/berth/pkg/sandbox"
)

// ports of one sandbox on 127.0.0.1.
type ports struct {
	etcd, api, scheduler int
}

// reservations keep the ports of one sandbox while its components have not started or start again.
type reservations []*sandbox.Port

// reservePorts reserves the given port, or a free one, for the API server and free ones for the rest. After an error
// nothing is reserved.
func reservePorts(api int) (ports, reservations, error) {
	var chosen ports
	var held reservations
	for _, p := range []struct {
		want int
		into *int
	}{{api, &chosen.api}, {0, &chosen.etcd}, {0, &chosen.scheduler}} {
		r, err := sandbox.ReservePort(p.want)
		if err != nil {
			return ports{}, nil, errors.Join(err, held.close())
		}
		held = append(held, r)
		*p.into = r.Number
	}
	return chosen, held, nil
}

func (held reservations) close() error {
	var errs []error
	for _, r := range held {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
