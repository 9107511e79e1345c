// Prints what a client of status pages that others use reads of ours: `node status_client.js <address>`.
const { Statuspage } = require("statuspage.io");

const client = new Statuspage("ours");
client.setApiUrl(process.argv[2]);
const { api } = client;

(async () => {
  console.log(
    JSON.stringify({
      summary: await api.getSummary(),
      status: await api.getStatus(),
      components: await api.getComponents(),
      incidents: await api.incidents.getAll(),
      unresolved: await api.incidents.getUnresolved(),
      maintenances: await api.scheduledMaintenances.getAll(),
      active: await api.scheduledMaintenances.getActive(),
      upcoming: await api.scheduledMaintenances.getUpcoming(),
    }),
  );
})();
