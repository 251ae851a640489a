package nvidiasmi

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Lines of nvidia-smi -q: the head of a GPU, and two of its values.
var (
	queriedGPU   = regexp.MustCompile(`^GPU [0-9A-Fa-f:.]+\s*$`)
	queriedUUID  = regexp.MustCompile(`^\s+GPU UUID\s*:\s*(GPU-[0-9a-fA-F-]{8,64})\s*$`)
	queriedMinor = regexp.MustCompile(`^\s+Minor Number\s*:\s*(\d{1,3})\s*$`)
)

// Minors returns the minor numbers of the device files, N of /dev/nvidiaN, by the UUIDs of the GPUs. They need not be
// the indices. GPUs that do not tell theirs are left out.
func (t *Tool) Minors(ctx context.Context) (map[string]int, error) {
	text, err := t.run(ctx, "-q")
	if err != nil {
		return nil, err
	}
	minors, err := parseMinors(text)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of nvidia-smi -q: %w", err)
	}
	return minors, nil
}

// parseMinors reads a report in which the values of each GPU follow its head.
func parseMinors(text string) (map[string]int, error) {
	minors, owners := map[string]int{}, map[int]string{}
	uuid, heads := "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if queriedGPU.MatchString(line) {
			uuid = ""
			heads++
			continue
		}
		if found := queriedUUID.FindStringSubmatch(line); found != nil {
			uuid = found[1]
			continue
		}
		found := queriedMinor.FindStringSubmatch(line)
		if found == nil || uuid == "" {
			continue
		}
		minor, _ := strconv.Atoi(found[1]) // three digits
		if other, taken := owners[minor]; taken && other != uuid {
			return nil, fmt.Errorf("minor number %d of %s and of %s: want each once", minor, other, uuid)
		}
		owners[minor], minors[uuid] = uuid, minor
	}
	if heads == 0 {
		return nil, errors.New("no GPU in it")
	}
	return minors, nil
}
