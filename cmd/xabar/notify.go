package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"xabar/chat"
	"xabar/gateway/notify"
	"xabar/gateway/notify/outbound"
	"xabar/gateway/notify/webhook"
	"xabar/gateway/notify/webpush"
	"xabar/persistence/queue"
)

// notifications are what tells users of messages that have not arrived. Without a
// channel nothing is scheduled.
type notifications struct {
	queue     queue.Queue // nil without a channel
	scheduler *notify.Scheduler
	notifiers []chat.Notifier
	everybody []string // channels that need no target of the user's
	vapid     *webpush.Keys
	callers   []*outbound.Caller
}

// openNotifications makes the channels that are configured, and the queue behind them.
func (a *App) openNotifications(ctx context.Context) (_ *notifications, err error) {
	n := &notifications{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if subject := a.cfg.vapidSubject(); subject != "" {
		if n.vapid, err = webpush.LoadKeys(ctx, a.store, subject); err != nil {
			return nil, fmt.Errorf("--vapid-subject: %w", err)
		}
		n.add(webpush.New(webpush.Options{
			Keys: n.vapid, AllowPrivate: a.cfg.PushPrivate,
			Caller: n.caller(outbound.Options{PublicOnly: !a.cfg.PushPrivate}),
		}))
	}
	if a.cfg.WebhookURL != "" {
		hook, err := webhook.New(webhook.Options{
			URL: a.cfg.WebhookURL, Secret: a.cfg.WebhookSecret, Caller: n.caller(outbound.Options{}),
		})
		if err != nil {
			return nil, fmt.Errorf("--webhook-url, --webhook-secret: %w", err)
		}
		n.add(hook)
		n.everybody = append(n.everybody, hook.Channel())
	}
	if len(n.notifiers) == 0 {
		return n, nil
	}
	n.queue, err = queue.Open(ctx, a.cfg.url(), queue.Options{Channels: n.channels(), Logger: a.log, Migrate: true})
	if err != nil {
		return nil, fmt.Errorf("open the queue of notifications: %w", err)
	}
	return n, nil
}

func (n *notifications) add(notifier chat.Notifier) { n.notifiers = append(n.notifiers, notifier) }

func (n *notifications) caller(o outbound.Options) *outbound.Caller {
	caller := outbound.New(o)
	n.callers = append(n.callers, caller)
	return caller
}

// channels are the names of what is switched on.
func (n *notifications) channels() []string {
	names := make([]string, len(n.notifiers))
	for i, notifier := range n.notifiers {
		names[i] = notifier.Channel()
	}
	return names
}

// absences is who hears of messages that may not have arrived; nil: nobody.
func (n *notifications) absences(a *App) chat.Absences {
	if n.queue == nil {
		return nil
	}
	n.scheduler = notify.New(notify.Options{
		Store: a.store, Presence: a.sharing.presence, Queue: n.queue, Notifiers: n.notifiers,
		Policy: chat.NotifyPolicy{Wait: a.cfg.NotifyWait, DefaultQuiet: a.cfg.QuietHoursDefault.hours, Everybody: n.everybody},
		Logger: a.log, Metrics: newNotifyMetrics(a.registry),
	})
	return n.scheduler
}

// Run schedules and sends until ctx ends.
func (n *notifications) Run(ctx context.Context) error {
	if n.scheduler == nil {
		return nil
	}
	return n.scheduler.Run(ctx)
}

// Close releases what Run worked with.
func (n *notifications) Close() error {
	for _, caller := range n.callers {
		caller.Close()
	}
	if n.queue == nil {
		return nil
	}
	return n.queue.Close()
}

// notifyMetrics counts what becomes of notifications (notify.Metrics).
type notifyMetrics struct {
	scheduled             prometheus.Counter
	suppressed            *prometheus.CounterVec
	queued, sent, retried *prometheus.CounterVec
	failed, targets       *prometheus.CounterVec
}

func newNotifyMetrics(r prometheus.Registerer) *notifyMetrics {
	byChannel := func(name, help string) *prometheus.CounterVec { return counterVec(r, name, help, "channel") }
	return &notifyMetrics{
		scheduled:  counter(r, "xabar_notifications_scheduled_total", "Waits for a message's arrival that have ended."),
		suppressed: counterVec(r, "xabar_notifications_suppressed_total", "Notifications that were not sent, by the reason.", "why"),
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
