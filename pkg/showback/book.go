package showback

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// book holds exact sums by day and key.
type book struct {
	from, to time.Time
	// midnight is that of the first day.
	midnight time.Time
	days     []daySums
}

type daySums struct {
	lines       map[string]sums
	idle, empty sums
	// unpriced is GPU time on nodes without a price.
	unpriced wide
}

func newBook(from, to time.Time) *book {
	b := &book{from: from, to: to, midnight: from.Truncate(24 * time.Hour)}
	b.days = make([]daySums, b.day(to.Add(-1))+1)
	for i := range b.days {
		b.days[i].lines = map[string]sums{}
	}
	return b
}

func (b *book) day(at time.Time) int { return int(at.Sub(b.midnight) / (24 * time.Hour)) }

func (b *book) dayEnd(day int) time.Time {
	return b.midnight.Add(time.Duration(day+1) * 24 * time.Hour)
}

const (
	gpuUnit   = uint64(time.Second)
	moneyUnit = uint64(time.Hour)
)

// statement rounds. What is left of a day when it is rounded down goes to the next one, and what is left of the lines
// of a day when they are goes to those that lost most, so that everything adds up.
func (b *book) statement() *Statement {
	s := &Statement{From: b.from, To: b.to, Lines: []Line{}, Days: make([]Day, len(b.days)), Notes: []string{}}
	lines := map[string]*Line{}
	var left sums
	var unpriced wide
	for i := range b.days {
		sums := &b.days[i]
		day := &s.Days[i]
		day.From, day.To = b.dayEnd(i-1), b.dayEnd(i)
		if day.From.Before(b.from) {
			day.From = b.from
		}
		if day.To.After(b.to) {
			day.To = b.to
		}
		left = sums.round(day, left)
		unpriced = unpriced.plus(sums.unpriced)
		s.Idle.add(day.Idle)
		s.Empty.add(day.Empty)
		s.Total.add(day.Total)
		for _, l := range day.Lines {
			if lines[l.Key] == nil {
				lines[l.Key] = &Line{Key: l.Key}
			}
			lines[l.Key].MilliGPUSeconds += l.MilliGPUSeconds
			lines[l.Key].MicroDollars += l.MicroDollars
			if l.UsedMilliGPUSeconds != nil {
				s.Measured = true
				used := *l.UsedMilliGPUSeconds
				if before := lines[l.Key].UsedMilliGPUSeconds; before != nil {
					used += *before
				}
				lines[l.Key].UsedMilliGPUSeconds = &used
			}
		}
	}
	for _, l := range lines {
		s.Lines = append(s.Lines, *l)
	}
	sortedLines(s.Lines)
	s.UnpricedMilliGPUSeconds, _ = unpriced.over(gpuUnit)
	return s
}

// round fills in the day, given what was left of the days before, and returns what is left.
func (d *daySums) round(day *Day, left sums) sums {
	keys := slices.Sorted(maps.Keys(d.lines))
	all := make([]sums, 0, len(keys)+2)
	for _, key := range keys {
		all = append(all, d.lines[key])
	}
	all = append(all, d.idle, d.empty)
	gpu, leftGPU := apportion(all, left.gpu, gpuUnit, func(s sums) wide { return s.gpu })
	money, leftMoney := apportion(all, left.money, moneyUnit, func(s sums) wide { return s.money })
	day.Lines = make([]Line, len(keys))
	for i, key := range keys {
		day.Lines[i] = Line{Key: key, MilliGPUSeconds: gpu[i], MicroDollars: money[i]}
		if d.lines[key].measured {
			used, _ := d.lines[key].used.over(gpuUnit)
			day.Lines[i].UsedMilliGPUSeconds = &used
		}
	}
	n := len(keys)
	day.Idle, day.Empty = Amount{gpu[n], money[n]}, Amount{gpu[n+1], money[n+1]}
	for i := range all {
		day.Total.add(Amount{gpu[i], money[i]})
	}
	sortedLines(day.Lines)
	return sums{gpu: leftGPU, money: leftMoney}
}

// apportion rounds amounts to units so that they add up to their exact sum with what was left before, rounded down. It
// returns what is left of that.
func apportion(of []sums, left wide, unit uint64, amount func(sums) wide) ([]int64, wide) {
	total := left
	rounded, remainders := make([]int64, len(of)), make([]uint64, len(of))
	given := int64(0)
	for i := range of {
		total = total.plus(amount(of[i]))
		rounded[i], remainders[i] = amount(of[i]).over(unit)
		given += rounded[i]
	}
	want, rest := total.over(unit)
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(remainders[j], remainders[i]) })
	// What was left is less than a unit: no more units are missing than there are amounts with a remainder.
	for _, i := range order {
		if given == want {
			break
		}
		rounded[i]++
		given++
	}
	return rounded, wide{lo: rest}
}
