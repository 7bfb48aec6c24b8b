package main

import "github.com/prometheus/client_golang/prometheus"

// notifyMetrics counts what becomes of notifications (notify.Metrics).
type notifyMetrics struct {
	scheduled             prometheus.Counter
	suppressed            *prometheus.CounterVec
	queued, sent, retried *prometheus.CounterVec
	failed, targets       *prometheus.CounterVec
}

func newNotifyMetrics(r *registry) *notifyMetrics {
	r.part = partNotifications
	byChannel := func(name, help string) *prometheus.CounterVec { return r.counters(name, help, "channel") }
	return &notifyMetrics{
		scheduled:  r.counter("xabar_notifications_scheduled_total", "Waits for a message's arrival that have ended."),
		suppressed: r.counters("xabar_notifications_suppressed_total", "Notifications that were not sent, by the reason.", "why"),
		queued:     byChannel("xabar_notifications_queued_total", "Notifications handed to the queue."),
		sent:       byChannel("xabar_notifications_sent_total", "Notifications that a channel has taken."),
		retried:    byChannel("xabar_notifications_retried_total", "Attempts that failed and are repeated."),
		failed:     byChannel("xabar_notifications_failed_total", "Notifications that were given up; xabar notifications list --failed shows them."),
		targets:    byChannel("xabar_notification_targets_removed_total", "Subscriptions and chats that were removed because they will never work again."),
	}
}

func (m *notifyMetrics) Scheduled(n int)           { m.scheduled.Add(float64(n)) }
func (m *notifyMetrics) Suppressed(why string)     { m.suppressed.WithLabelValues(why).Inc() }
func (m *notifyMetrics) Queued(channel string)     { m.queued.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Sent(channel string)       { m.sent.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Retried(channel string)    { m.retried.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Failed(channel string)     { m.failed.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) TargetGone(channel string) { m.targets.WithLabelValues(channel).Inc() }
