package runtimes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var trainer = Class{Namespace: "team-a", Controller: "trainer", Image: "train:1", GPUs: 8}

// bookOf returns a book in which pods of the class have run for these times.
func bookOf(class Class, claim Claim, ran ...time.Duration) *Book {
	b := NewBook()
	for _, r := range ran {
		b.Ended(&class, &claim, r)
	}
	return b
}

func repeat(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v, want %v to %v", what, got, low, high)
	}
}

func median(b *Book, class Class, claim Claim, age time.Duration) time.Duration {
	s := b.Of(&class, &claim)
	left := s.Left(age)
	return left.At(0.5)
}

func TestForecasts(t *testing.T) {
	const h = time.Hour
	other := Class{Namespace: "team-a", Controller: "other", Image: "x", GPUs: 8}
	stranger := Class{Namespace: "team-b", Controller: "x", GPUs: 1}
	for _, c := range []struct {
		name      string
		book      *Book
		class     Class
		claim     Claim
		age       time.Duration
		low, high time.Duration
	}{
		{"a pod of a class that ran for two hours has two hours left", bookOf(trainer, Claim{}, repeat(32, 2*h)...), trainer,
			Claim{}, 0, 119 * time.Minute, 121 * time.Minute},
		{"half way through, one hour is left", bookOf(trainer, Claim{}, repeat(32, 2*h)...), trainer, Claim{}, h,
			59 * time.Minute, 61 * time.Minute},
		{"another controller of the namespace is the next best guess", bookOf(trainer, Claim{}, repeat(32, 2*h)...), other,
			Claim{}, 0, 119 * time.Minute, 121 * time.Minute},
		{"another namespace and size is better than nothing", bookOf(trainer, Claim{}, repeat(32, 2*h)...), stranger, Claim{},
			0, 119 * time.Minute, 121 * time.Minute},
		{"nothing known is some time, and not never", NewBook(), trainer, Claim{}, 0, 20 * time.Minute, 40 * time.Minute},
		{"what outlives a guess gets a longer one", NewBook(), trainer, Claim{}, 10 * h, 9 * h, 12 * h},
		{"what outlives its class gets a growing one", bookOf(trainer, Claim{}, repeat(32, 2*h)...), trainer, Claim{}, 40 * h,
			35 * h, 45 * h},
		{"a declaration counts before the class", bookOf(trainer, Claim{}, repeat(32, 20*h)...), trainer,
			Claim{Expected: 2 * h}, 0, h, 2 * h},
		{"a class that keeps what it declares is believed exactly", bookOf(trainer, Claim{Expected: h}, repeat(32, h)...),
			trainer, Claim{Expected: 6 * h}, 0, 355 * time.Minute, 365 * time.Minute},
		{"a class that runs three times as long as it declares is expected to do so again",
			bookOf(trainer, Claim{Expected: h}, repeat(32, 3*h)...), trainer, Claim{Expected: 2 * h}, 0, 355 * time.Minute,
			365 * time.Minute},
		{"a limit bounds what is learned", bookOf(trainer, Claim{}, repeat(32, 20*h)...), trainer, Claim{Limit: 2 * h}, 0,
			30 * time.Minute, 2 * h},
		{"a class that uses a third of its limit is expected to do so again",
			bookOf(trainer, Claim{Limit: 3 * h}, repeat(32, h)...), trainer, Claim{Limit: 6 * h}, 0, 118 * time.Minute,
			122 * time.Minute},
		{"at its limit a pod has no time left", NewBook(), trainer, Claim{Limit: 2 * h}, 2 * h, 0, 0},
		{"a service does not end", bookOf(trainer, Claim{}, repeat(32, h)...), trainer, Claim{Service: true}, 0, Never,
			Never},
		{"a service that says when does", NewBook(), trainer, Claim{Service: true, Limit: 2 * h}, 0, time.Minute, 2 * h},
		{"what ran lately displaces what ran before",
			bookOf(trainer, Claim{}, append(repeat(300, h), repeat(300, 4*h)...)...), trainer, Claim{}, 0, 239 * time.Minute,
			241 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, "median", median(c.book, c.class, c.claim, c.age), c.low, c.high)
		})
	}
}

func TestNarrowClassesPrevailOnceTheyAreKnown(t *testing.T) {
	b := NewBook()
	wide := Class{Namespace: "team-b", GPUs: 8}
	for range 300 {
		b.Ended(&wide, &Claim{}, 10*time.Hour)
	}
	if got := median(b, trainer, Claim{}, 0); got < 9*time.Hour {
		t.Errorf("without runs of its own: %v, want about 10h", got)
	}
	for range 8 {
		b.Ended(&trainer, &Claim{}, time.Hour)
	}
	within(t, "with eight", median(b, trainer, Claim{}, 0), 59*time.Minute, 61*time.Minute)
}

func TestPodsThatOutliveTheirDeclarationLoseItsCredit(t *testing.T) {
	b, claim := NewBook(), Claim{Expected: 10 * time.Minute}
	s := b.Of(&trainer, &claim)
	if left := s.Left(0); left.GoneBy(15*time.Minute) < 0.75 {
		t.Fatalf("at first a declaration is believed: %v", left)
	}
	if claim.Outlived(12 * time.Minute) {
		t.Error("two minutes too late are not a lie")
	}
	if !claim.Outlived(20 * time.Minute) {
		t.Error("twice as long as declared is not noted")
	}
	for range 5 {
		b.NoteOutlived(&trainer)
	}
	renamed := trainer
	renamed.Controller = "new-name"
	for _, class := range []Class{trainer, renamed} {
		s = b.Of(&class, &claim)
		if left := s.Left(0); left.GoneBy(15*time.Minute) > 0.5 {
			t.Errorf("%s is believed after five lies: %v", class.Controller, left)
		}
	}
	honest := Class{Namespace: "team-b", GPUs: 8}
	for range 20 {
		b.Ended(&honest, &claim, 10*time.Minute)
	}
	for range 500 {
		b.NoteOutlived(&trainer)
	}
	s = b.Of(&honest, &claim)
	if left := s.Left(0); left.GoneBy(15*time.Minute) < 0.75 {
		t.Errorf("the lies of another namespace count against an honest one: %v", left)
	}
}

// randomBook returns a book with random runs.
func randomBook(r *rand.Rand, runs int) *Book {
	b := NewBook()
	for range runs {
		class, claim := randomPod(r)
		b.Ended(&class, &claim, time.Duration(r.ExpFloat64()*float64(time.Hour)))
	}
	return b
}

func randomPod(r *rand.Rand) (Class, Claim) {
	class := Class{Namespace: fmt.Sprint("ns-", r.IntN(3)), Controller: fmt.Sprint(r.IntN(4)),
		Image: fmt.Sprint(r.IntN(2)), GPUs: r.IntN(3)}
	claim := Claim{}
	if r.IntN(2) == 0 {
		claim.Expected = time.Duration(r.ExpFloat64() * float64(time.Hour))
	}
	if r.IntN(3) == 0 {
		claim.Limit = time.Duration(r.ExpFloat64() * float64(4*time.Hour))
	}
	return class, claim
}

func TestARunThatIsDueHasNotOutlivedItsDeclaration(t *testing.T) {
	b, class, claim := NewBook(), Class{Namespace: "n", GPUs: 1}, Claim{Expected: 300 * time.Hour}
	for range 32 {
		b.Ended(&class, &claim, claim.Expected)
	}
	s := b.Of(&class, &claim)
	for _, c := range []struct {
		name  string
		age   time.Duration
		least time.Duration
		most  time.Duration
	}{
		{"twelve minutes before its end, which rounding hides", 300*time.Hour - 12*time.Minute, 0, 30 * time.Minute},
		{"a minute after it", 300*time.Hour + time.Minute, 0, 30 * time.Minute},
		{"much later", 310 * time.Hour, 20 * time.Hour, 2000 * time.Hour},
	} {
		left := s.Left(c.age)
		if m := left.At(0.5); m < c.least || m > c.most {
			t.Errorf("%s: %s are left, want %s to %s", c.name, m, c.least, c.most)
		}
	}
}

func TestForecastsAreDistributions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		b := randomBook(r, r.IntN(200))
		class, claim := randomPod(r)
		s := b.Of(&class, &claim)
		age := time.Duration(r.ExpFloat64() * float64(3*time.Hour))
		f := s.Left(age)
		for i := range f {
			if f[i] < 0 || i > 0 && f[i] < f[i-1] {
				t.Fatalf("times do not rise: %v", f)
			}
			if p := f.GoneBy(f[i]); p < Levels[i]-1e-9 {
				t.Fatalf("gone by %v with %v, want at least %v: %v", f[i], p, Levels[i], f)
			}
			if claim.Limit > 0 && age+f[i] > max(claim.Limit, age)+time.Second {
				t.Fatalf("ends after its limit: %v %v %v", age, f, claim)
			}
		}
		last := -1.0
		for d := time.Duration(0); d < 20*time.Hour; d += 17 * time.Minute {
			p := f.GoneBy(d)
			if p < last || p < 0 || p > 1 {
				t.Fatalf("gone by %v with %v after %v", d, p, last)
			}
			last = p
		}
		if last == 0 {
			t.Fatalf("a pod that is no service never ends: %v", f)
		}
	}
}

func TestTheLastOfSeveralEndsIsTheirProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 200 {
		all := make([]Forecast, 1+r.IntN(8))
		for i := range all {
			b := randomBook(r, 30)
			class, claim := randomPod(r)
			s := b.Of(&class, &claim)
			all[i] = s.Left(0)
		}
		last := Last(all)
		for i, level := range Levels {
			if p := allGone(all, last[i]+last[i]/64+2*time.Second); p < level-1e-9 {
				t.Fatalf("only with %v all have ended by the time for %v", p, level)
			}
			for k := range all {
				if last[i] < all[k][i] {
					t.Fatalf("the last end is before a single one: %v %v", last, all[k])
				}
			}
			if at := LastAt(all, level); at-last[i] > last[i]/32+2*time.Second || last[i]-at > last[i]/32+2*time.Second {
				t.Fatalf("LastAt(%v) = %v, Last has %v", level, at, last[i])
			}
		}
	}
	if f := Last([]Forecast{Certain(time.Hour), Certain(Never)}); f.Ends() {
		t.Errorf("what never ends does: %v", f)
	}
	if f := Last(nil); f.At(1) != 0 {
		t.Errorf("the last of no ends is not now: %v", f)
	}
}

func TestAfterAndLater(t *testing.T) {
	f, never := Certain(time.Hour), Certain(Never)
	if got := f.After(&f); got.At(0.5) != 2*time.Hour {
		t.Errorf("an hour after an hour is %v", got)
	}
	if got := f.After(&never); got.Ends() {
		t.Errorf("an hour after never is %v", got)
	}
	if got := f.Later(90 * time.Minute); got.At(0.5) != 0 {
		t.Errorf("an hour is over after 90 minutes, not %v", got)
	}
	if got := never.Later(time.Hour); got.Ends() {
		t.Error("never comes later")
	}
}

func TestStem(t *testing.T) {
	for name, want := range map[string]string{
		"trainer":                "trainer",
		"trainer-7":              "trainer",
		"trainer-20261126-run3":  "trainer",
		"train-llama-x7k2p":      "train-llama",
		"train-llama-bcdfg":      "train-llama",
		"nightly.28401120":       "nightly",
		"resnet-large":           "resnet-large",
		"7":                      "7",
		"a-":                     "a",
		"":                       "",
		"eval-0c5d3a1f-1-worker": "eval-0c5d3a1f-1-worker",
	} {
		if got := Stem(name); got != want {
			t.Errorf("Stem(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWhatForecastsRestOn(t *testing.T) {
	const h = time.Hour
	other := Class{Namespace: "team-b", Controller: "other", GPUs: 1}
	for _, c := range []struct {
		name  string
		book  *Book
		class Class
		claim Claim
		want  Basis
	}{
		{"nothing is a guess", NewBook(), trainer, Claim{}, Guessed},
		{"two runs of other pods are one, too", bookOf(other, Claim{}, repeat(2, h)...), trainer, Claim{}, Guessed},
		{"more of them are something", bookOf(other, Claim{}, repeat(8, h)...), trainer, Claim{}, FromOthers},
		{"its own runs are better", bookOf(trainer, Claim{}, repeat(4, h)...), trainer, Claim{}, FromItsRuns},
		{"those with another image are, too",
			bookOf(Class{Namespace: "team-a", Controller: "trainer", Image: "train:2", GPUs: 8}, Claim{}, repeat(4, h)...),
			trainer, Claim{}, FromItsRuns},
		{"what is declared comes before what is known", bookOf(trainer, Claim{}, repeat(8, h)...), trainer,
			Claim{Expected: h, Limit: h}, Declared},
		{"a limit does, too", bookOf(trainer, Claim{}, repeat(8, h)...), trainer, Claim{Limit: h}, Limited},
		{"a service does not end", bookOf(trainer, Claim{}, repeat(8, h)...), trainer, Claim{Service: true}, Endless},
		{"unless it says so", NewBook(), trainer, Claim{Service: true, Expected: h}, Declared},
	} {
		if s := c.book.Of(&c.class, &c.claim); s.Basis() != c.want {
			t.Errorf("%s: %d, want %d", c.name, s.Basis(), c.want)
		}
	}
}
