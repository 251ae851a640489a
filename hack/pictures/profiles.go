package main

// profiles shows which profile to name in a pod, as questions.
func profiles() string {
	c := &canvas{width: 960, height: 412}
	const (
		question, answer, height = 290.0, 240.0, 44.0
		second, third            = 390.0, 720.0
	)
	ask := func(x, y, width float64, words ...string) {
		c.box(box{x: x, y: y, width: width, height: height})
		for i, line := range words {
			c.text(x+padding, y+height/2+4+lineHeight*(float64(i)-float64(len(words)-1)/2), "", "start", line)
		}
	}
	name := func(x, y float64, profile string) {
		c.box(box{x: x, y: y, width: answer, height: height - 8, own: true, title: profile})
	}
	down := func(y float64, word string) {
		c.arrow([2]float64{question / 2, y}, [2]float64{question / 2, y + 50})
		c.text(question/2+8, y+30, "s", "start", word)
	}
	across := func(y float64, word string) {
		c.arrow([2]float64{question, y + 22}, [2]float64{second, y + 22})
		c.text((question+second)/2, y+15, "s", "middle", word)
	}
	ask(0, 0, question, "Can the pod name a scheduler?")
	across(0, "no")
	name(second, 4, "default-scheduler")
	c.text(second+answer+12, 26, "s f", "start", "Berth replaces the default one")
	down(height, "yes")

	ask(0, 94, question, "Do its pods have to start together?")
	across(94, "no")
	ask(second, 94, answer, "Does a low price matter most?")
	c.arrow([2]float64{second + answer, 108}, [2]float64{third, 94})
	c.text(second+answer+36, 92, "s", "middle", "yes")
	c.box(box{x: third, y: 70, width: answer, height: height - 8, own: true, title: "cost-optimized-scheduler"})
	c.arrow([2]float64{second + answer, 124}, [2]float64{third, 138})
	c.text(second+answer+36, 148, "s", "middle", "no")
	c.box(box{x: third, y: 122, width: answer, height: height - 8, own: true, title: "gpu-aware-scheduler"})
	down(94+height, "yes")

	ask(0, 188, question, "Are their GPUs paid for by the hour?")
	across(188, "yes")
	name(second, 192, "berth-scheduler")
	c.text(second+answer+12, 214, "s f", "start", "GPUs, price, gangs, network")
	down(188+height, "no")

	ask(0, 282, question, "KubeRay, or manifests of", "kubernetes-sigs/scheduler-plugins?")
	across(282, "yes")
	name(second, 286, "scheduler-plugins-scheduler")
	down(282+height, "no")
	name(0, 376, "gang-scheduler")
	c.text(second, 398, "s f", "start", "Every profile starts gangs as a whole.")
	return c.document("Which profile: a decision tree")
}
