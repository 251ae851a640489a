// Package backlog decides when pods in no gang are tried again for which no node has room.
//
// kube-scheduler tries each of them whenever a pod ends that held some of what they lack, so that with thousands of
// waiting pods one scheduler does nothing else. A Backlog keeps such pods from being woken by events, and names as many
// of them as the account of free capacity has room for, in the order of the queue. The pods stay in kube-scheduler's
// queue, which tries each of them every five minutes in any case.
//
// gangloop tells it of pods that failed and asks it for pods to try; the handlers of Coscheduling tell it of pods that
// are gone. What is free is asked of capacity. It never looks at a scheduling cycle, and wakes no pod itself.
package backlog
