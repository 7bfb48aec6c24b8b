package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
)

// notifyMetrics counts what becomes of notifications (notify.Metrics).
type notifyMetrics struct {
	scheduled             prometheus.Counter
	suppressed            *prometheus.CounterVec
	queued, sent, retried *prometheus.CounterVec
	failed, targets       *prometheus.CounterVec
}

// suppressions are why nothing is sent.
var suppressions = []string{
	chat.WhyGone, chat.WhyDelivered, chat.WhyRead, chat.WhyDecided, chat.WhyMuted, chat.WhyOff, chat.WhyOnlyDirect,
	chat.WhyBlocked, chat.WhyNoChannel, chat.WhyOutdated, chat.WhyUnknown,
}

// newNotifyMetrics makes them for the channels that are switched on.
func newNotifyMetrics(r *registry, channels []string) *notifyMetrics {
	r.part = partNotifications
	byChannel := func(name, help string) *prometheus.CounterVec {
		c := r.counters(name, help, "channel")
		byLabel(c, channels...)
		return c
	}
	m := &notifyMetrics{
		scheduled:  r.counter("xabar_notifications_scheduled_total", "Waits for a message's arrival that are over, and were looked at."),
		suppressed: r.counters("xabar_notifications_suppressed_total", "Notifications that were not sent, by the reason: delivered or read meanwhile, muted, off and so on.", "reason"),
		queued:     byChannel("xabar_notifications_queued_total", "Notifications handed to the queue."),
		sent:       byChannel("xabar_notifications_sent_total", "Notifications that a channel has taken."),
		retried:    byChannel("xabar_notifications_retried_total", "Attempts that failed and are repeated."),
		failed:     byChannel("xabar_notifications_failed_total", "Notifications that were given up; xabar notifications list --failed shows them."),
		targets:    byChannel("xabar_notification_targets_removed_total", "Subscriptions and chats that were removed because they will never work again."),
	}
	byLabel(m.suppressed, suppressions...)
	return m
}

func (m *notifyMetrics) Scheduled(n int)           { m.scheduled.Add(float64(n)) }
func (m *notifyMetrics) Suppressed(why string)     { m.suppressed.WithLabelValues(why).Inc() }
func (m *notifyMetrics) Queued(channel string)     { m.queued.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Sent(channel string)       { m.sent.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Retried(channel string)    { m.retried.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Failed(channel string)     { m.failed.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) TargetGone(channel string) { m.targets.WithLabelValues(channel).Inc() }
