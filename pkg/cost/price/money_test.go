package price

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want MicroDollars
		err  string
	}{
		"dollars and cents":                         {in: "3.06", want: 3_060_000},
		"two dollars ten":                           {in: "2.10", want: 2_100_000},
		"two dollars ninety":                        {in: "2.90", want: 2_900_000},
		"less than a dollar is not nothing":         {in: "0.35", want: 350_000},
		"no digit before the point":                 {in: ".35", want: 350_000},
		"a whole number":                            {in: "12", want: 12 * Dollar},
		"nothing is a price":                        {in: "0", want: 0},
		"the last micro-dollar":                     {in: "0.000001", want: 1},
		"half a micro-dollar rounds up":             {in: "0.0000005", want: 1},
		"less than half rounds down":                {in: "0.00000049", want: 0},
		"many digits behind the point":              {in: "0.1" + strings.Repeat("0", 100), want: 100_000},
		"leading zeros":                             {in: "0003.5", want: 3_500_000},
		"the largest price":                         {in: "1000000", want: MaxPrice},
		"one micro-dollar above the largest":        {in: "1000000.000001", err: "more than 1000000 dollars"},
		"far beyond 64 bits":                        {in: strings.Repeat("9", 400), err: "more than 1000000 dollars"},
		"a wrong letter behind too many digits":     {in: strings.Repeat("9", 40) + "x", err: "not a decimal"},
		"empty":                                     {in: "", err: "not a decimal"},
		"a point alone":                             {in: ".", err: "not a decimal"},
		"a point at the end":                        {in: "3.", err: "not a decimal"},
		"two points":                                {in: "1.2.3", err: "not a decimal"},
		"negative":                                  {in: "-1", err: "not a decimal"},
		"signed":                                    {in: "+1", err: "not a decimal"},
		"currency":                                  {in: "$3.06", err: "not a decimal"},
		"exponent":                                  {in: "3e1", err: "not a decimal"},
		"decimal comma":                             {in: "3,06", err: "not a decimal"},
		"blank around":                              {in: " 3.06", err: "not a decimal"},
		"hexadecimal":                               {in: "0x10", err: "not a decimal"},
		"infinity":                                  {in: "Inf", err: "not a decimal"},
		"digits of another script":                  {in: "٣", err: "not a decimal"},
		"a wrong letter behind the sixth decimal":   {in: "0.1234567x", err: "not a decimal"},
		"a blank behind the micro-dollar":           {in: "0.123456 ", err: "not a decimal"},
		"rounding up carries into the next dollars": {in: "1.9999999", want: 2 * Dollar},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tc.in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("Parse(%q) = %v, %v; want an error with %q", tc.in, got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("Parse(%q) = %d, %v; want %d", tc.in, got, err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"3.06", "0.0000005", "", "1000000", "-1", "9999999999999999999", "1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse(s)
		if err != nil {
			return
		}
		if got < 0 || got > MaxPrice {
			t.Fatalf("Parse(%q) = %d is out of range", s, got)
		}
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("Parse(%q) accepts what is not a number", s)
		}
		diff := exact.Sub(exact, big.NewRat(int64(got), int64(Dollar)))
		if diff.Abs(diff).Cmp(big.NewRat(1, 2*int64(Dollar))) > 0 {
			t.Fatalf("Parse(%q) = %d is more than half a micro-dollar off", s, got)
		}
	})
}

func TestString(t *testing.T) {
	t.Parallel()
	for in, want := range map[MicroDollars]string{
		0: "$0.00", 4: "$0.000004", 350_000: "$0.35", 3_060_000: "$3.06", 12_500_100: "$12.5001", -2_000_000: "-$2.00",
	} {
		if got := in.String(); got != want {
			t.Errorf("%d is written %s, want %s", int64(in), got, want)
		}
	}
}

func TestArithmeticSaturates(t *testing.T) {
	t.Parallel()
	const most = MicroDollars(math.MaxInt64)
	for name, tc := range map[string]struct{ got, want MicroDollars }{
		"a sum that fits":            {MicroDollars(2).Plus(3), 5},
		"a sum that does not fit":    {most.Plus(1), most},
		"a difference":               {MicroDollars(5).Minus(3), 2},
		"a difference below nothing": {MicroDollars(3).Minus(5), 0},
		"a third":                    {MicroDollars(10).Scale(1, 3), 3},
		"scaled by nothing":          {MicroDollars(5).Scale(0, 3), 0},
		"scaled by a negative":       {MicroDollars(5).Scale(-1, 3), 0},
		"divided by nothing":         {MicroDollars(5).Scale(1, 0), most},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %d, want %d", name, tc.got, tc.want)
		}
	}
}

func TestScaleIsExactWhereTheResultFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		num := rapid.Int64Range(0, math.MaxInt64).Draw(t, "numerator")
		den := rapid.Int64Range(1, math.MaxInt64).Draw(t, "denominator")
		product := new(big.Int).Mul(big.NewInt(m), big.NewInt(num))
		want := new(big.Int).Div(product, big.NewInt(den))
		got := big.NewInt(int64(MicroDollars(m).Scale(num, den)))
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got.Cmp(want) != 0 {
			t.Fatalf("%d·%d/%d = %s, want %s", m, num, den, got, want)
		}
	})
}

func TestFromDollars(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]MicroDollars{0: 0, 3.06: 3_060_000, 0.0000006: 1, 1_000_000: MaxPrice} {
		if got, err := FromDollars(in); err != nil || got != want {
			t.Errorf("FromDollars(%v) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []float64{-0.01, 1_000_000.01, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64} {
		if got, err := FromDollars(in); err == nil {
			t.Errorf("FromDollars(%v) = %d, want an error", in, got)
		}
	}
}
